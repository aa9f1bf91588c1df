import type { ExecutionResult } from 'graphql'
import type { RateLimits } from '../../schema/errors.ts'
import { type DataOf, gatewayOperation } from '../../schema/operations.ts'
import { KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import { RATE_LIMITS, rateLimitHeaders } from '../http/rate-limits.ts'
import { type Call, inRestNames, type JsonObject } from '../http/route.ts'

const USAGE = 'usage { promptTokens cachedPromptTokens cacheWritePromptTokens completionTokens totalTokens }'
const FACTS = `warnings replayed ${USAGE} ${RATE_LIMITS}`
const CREATE = gatewayOperation(
  `mutation ChatCompletion($input: ChatCompletionInput!) { createChatCompletion(input: $input) { response ${FACTS} } }`,
)
const STREAM = gatewayOperation(
  `subscription ChatCompletionChunks($input: ChatCompletionInput!) { chatCompletion(input: $input) { chunks ${FACTS} } }`,
)

export interface AnswerFacts {
  /** Of a stream, with its first event. */
  readonly rateLimits?: RateLimits | null
  /** The answer of an earlier call with the same idempotency key. */
  readonly replayed?: boolean
}

/** As it was charged: reported by the engine or, where that reports none, counted by the service. */
export interface ChargedUsage {
  readonly promptTokens: number
  /** Among the prompt's. */
  readonly cachedPromptTokens: number
  /** Among the prompt's, too. */
  readonly cacheWritePromptTokens: number
  readonly completionTokens: number
  readonly totalTokens: number
}

export interface ChatAnswer extends AnswerFacts {
  readonly response: JsonObject
  readonly warnings: readonly string[]
  readonly usage: ChargedUsage
}

export interface ChatEvent extends AnswerFacts {
  readonly chunks: readonly JsonObject[]
  /** With the first event. */
  readonly warnings?: readonly string[] | null
  /** With the last event. */
  readonly usage?: ChargedUsage | null
}

/** Answers one request of the chat protocol. @throws {KisError} */
export async function completeChat({ ask, setHeaders, idempotencyKey }: Call, request: JsonObject): Promise<ChatAnswer> {
  const input = { request, idempotencyKey }
  const { createChatCompletion: answer } = await ask(CREATE, { input })
  setHeaders(factHeaders(answer))
  return answer
}

/** Streams the answer to one request of the chat protocol; nothing happens before the first `next()`. @throws {KisError} */
export async function* streamChat(
  { subscribe, context, setHeaders, idempotencyKey }: Call,
  request: JsonObject,
): AsyncGenerator<ChatEvent, void> {
  const events = subscribe({ query: STREAM, variables: { input: { request, idempotencyKey } } })
  // The vendor's work must end when the client leaves, not at the next chunk.
  context.signal.addEventListener('abort', () => void events.return?.(), { once: true })
  for await (const result of events) {
    const event = eventOf(result)
    // They come with the first event.
    if (event.warnings) setHeaders(factHeaders(event))
    yield event
  }
  context.signal.throwIfAborted()
}

function eventOf({ data, errors }: ExecutionResult): ChatEvent {
  if (errors?.length) throw inRestNames(KisError.fromGraphQL(errors[0]!))
  if (!data) throw new ServiceUnavailable('A part of the service')
  return (data as DataOf<typeof STREAM>).chatCompletion
}

/** What every answer of a model says beside itself, as far as it has it. */
export function factHeaders({ rateLimits, replayed }: AnswerFacts): Readonly<Record<string, string>> {
  return { ...rateLimitHeaders(rateLimits), ...(replayed && { 'idempotent-replayed': 'true' }) }
}

/** One header for all that the engine could not honour. */
export function warningHeader(warnings: readonly string[] | null | undefined): Readonly<Record<string, string>> {
  return warnings?.length ? { 'x-kis-warning': warnings.join(', ') } : {}
}

/** A stream that ended before its first chunk. */
export function noAnswer(): KisError {
  return new KisError('engine_error', 'The engine gave no answer.')
}
