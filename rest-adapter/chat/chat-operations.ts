import type { RateLimits } from '../../schema/errors.ts'
import { gatewayOperation } from '../../schema/operations.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { RATE_LIMITS, rateLimitHeaders } from '../http/rate-limits.ts'
import type { Call, JsonObject } from '../http/route.ts'

const USAGE = 'usage { promptTokens cachedPromptTokens cacheWritePromptTokens completionTokens totalTokens }'
const FACTS = `warnings replayed ${USAGE} ${RATE_LIMITS}`
const CREATE = gatewayOperation(
  `mutation ChatCompletion($input: ChatCompletionInput!) { createChatCompletion(input: $input) { response responseDownload { path } ${FACTS} } }`,
)
const STREAM = gatewayOperation(
  `subscription ChatCompletionChunks($input: ChatCompletionInput!) { chatCompletion(input: $input) { id cursor chunks ${FACTS} } }`,
)
const FOLLOW = gatewayOperation(
  `subscription ChatCompletionEvents($id: ID!, $after: Cursor) { chatCompletionEvents(id: $id, after: $after) { id cursor chunks ${FACTS} } }`,
)

interface ResponseFacts {
  /** A stream has them in its first event. */
  readonly rateLimits?: RateLimits | null
  /** True: this is the response of an earlier call with the same idempotency key. */
  readonly replayed?: boolean
}

/** The charged usage, in tokens: the engine's report or, without one, the service's own count. */
export interface ChargedUsage {
  readonly promptTokens: number
  /** Included in `promptTokens`. */
  readonly cachedPromptTokens: number
  /** Included in `promptTokens`. */
  readonly cacheWritePromptTokens: number
  readonly completionTokens: number
  readonly totalTokens: number
}

export interface ChatResult extends ResponseFacts {
  readonly response: JsonObject
  /** The path of a long replayed response, which `response` then lacks. */
  readonly responseDownload?: { readonly path: string } | null
  readonly warnings: readonly string[]
  readonly usage: ChargedUsage
}

export interface ChatEvent extends ResponseFacts {
  /** The id of the stream. */
  readonly id: string
  /** The number of chunks up to the end of this event. */
  readonly cursor: string
  readonly chunks: readonly JsonObject[]
  /** Set in the first event. */
  readonly warnings?: readonly string[] | null
  /** Set in the last event. */
  readonly usage?: ChargedUsage | null
}

/**
 * Runs one request of the chat protocol. `replayAsBytes`: a replayed long response is returned as the path of its
 * bytes.
 * @throws {KisError} the first error of the gateway
 */
export async function completeChat(
  { execute, setHeaders, idempotencyKey }: Call,
  request: JsonObject,
  replayAsBytes?: true,
): Promise<ChatResult> {
  const input = { request, idempotencyKey, replayAsBytes }
  const { createChatCompletion: completion } = await execute(CREATE, { input })
  setHeaders(factHeaders(completion))
  return completion
}

/**
 * Streams the response to one request of the chat protocol. Nothing happens before the first `next()`.
 * @throws {KisError} the first error of the gateway
 */
export function streamChat(call: Call, request: JsonObject): AsyncIterable<ChatEvent> {
  const variables = { input: { request, idempotencyKey: call.idempotencyKey } }
  return call.subscribe({ query: STREAM, variables }, ({ chatCompletion }) => withFacts(call, chatCompletion))
}

/**
 * Resumes a stream after the client's last cursor, or from the start. Nothing happens before the first `next()`.
 * @throws {KisError} the first error of the gateway
 */
export function followChat(call: Call, id: string, after: unknown): AsyncIterable<ChatEvent> {
  const operation = { query: FOLLOW, variables: { id, after } }
  return call.subscribe(operation, ({ chatCompletionEvents }) => withFacts(call, chatCompletionEvents), { mayReturn: true })
}

/** Sets the headers for the facts of the response, which come with the first event. */
function withFacts({ setHeaders }: Call, event: ChatEvent): ChatEvent {
  if (event.warnings) setHeaders(factHeaders(event))
  return event
}

/** Returns the headers that every response of a model has, for the facts that are known. */
export function factHeaders({ rateLimits, replayed }: ResponseFacts): Readonly<Record<string, string>> {
  return { ...rateLimitHeaders(rateLimits), ...(replayed && { 'idempotent-replayed': 'true' }) }
}

/** Returns one header that names everything that the engine could not honour. */
export function warningHeader(warnings: readonly string[] | null | undefined): Readonly<Record<string, string>> {
  return warnings?.length ? { 'x-kis-warning': warnings.join(', ') } : {}
}

/** Returns the error for a stream that ended before its first chunk. */
export function noResponse(): KisError {
  return new KisError('engine_error', 'The engine returned no response.')
}
