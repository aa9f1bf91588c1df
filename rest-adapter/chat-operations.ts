import type { ExecutionResult } from 'graphql'
import type { RateLimits } from '../schema/errors.ts'
import { KisError, ServiceUnavailable } from '../subgraphs/common/errors.ts'
import { RATE_LIMITS, rateLimitHeaders } from './rate-limits.ts'
import { type Call, inRestNames, type JsonObject } from './route.ts'

const USAGE = 'usage { promptTokens cachedPromptTokens cacheWritePromptTokens completionTokens totalTokens }'
const CREATE = `mutation ChatCompletion($input: ChatCompletionInput!) { createChatCompletion(input: $input) { response warnings ${USAGE} ${RATE_LIMITS} } }`
const STREAM = `subscription ChatCompletionChunks($input: ChatCompletionInput!) { chatCompletion(input: $input) { chunks warnings ${USAGE} ${RATE_LIMITS} } }`

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

export interface ChatAnswer {
  readonly response: JsonObject
  readonly warnings: readonly string[]
  readonly usage: ChargedUsage
  readonly rateLimits?: RateLimits | null
}

export interface ChatEvent {
  readonly chunks: readonly JsonObject[]
  /** With the first event. */
  readonly warnings?: readonly string[] | null
  /** With the last event. */
  readonly usage?: ChargedUsage | null
  /** With the first event. */
  readonly rateLimits?: RateLimits | null
}

/** Answers one request of the chat protocol. @throws {KisError} */
export async function completeChat({ ask, setHeaders }: Call, request: JsonObject): Promise<ChatAnswer> {
  const { createChatCompletion: answer } = await ask<{ readonly createChatCompletion: ChatAnswer }>(CREATE, { input: { request } })
  setHeaders(rateLimitHeaders(answer.rateLimits))
  return answer
}

/** Streams the answer to one request of the chat protocol; nothing happens before the first `next()`. @throws {KisError} */
export async function* streamChat({ subscribe, context, setHeaders }: Call, request: JsonObject): AsyncGenerator<ChatEvent, void> {
  const events = subscribe({ query: STREAM, variables: { input: { request } } })
  // The vendor's work must end when the client leaves, not at the next chunk.
  context.signal.addEventListener('abort', () => void events.return?.(), { once: true })
  for await (const result of events) {
    const event = eventOf(result)
    if (event.rateLimits) setHeaders(rateLimitHeaders(event.rateLimits))
    yield event
  }
  context.signal.throwIfAborted()
}

function eventOf({ data, errors }: ExecutionResult): ChatEvent {
  if (errors?.length) throw inRestNames(KisError.fromGraphQL(errors[0]!))
  if (!data) throw new ServiceUnavailable('A part of the service')
  return (data as unknown as { readonly chatCompletion: ChatEvent }).chatCompletion
}

/** One header for all that the engine could not honour. */
export function warningHeader(warnings: readonly string[] | null | undefined): Readonly<Record<string, string>> {
  return warnings?.length ? { 'x-kis-warning': warnings.join(', ') } : {}
}

/** A stream that ended before its first chunk. */
export function noAnswer(): KisError {
  return new KisError('engine_error', 'The engine gave no answer.')
}
