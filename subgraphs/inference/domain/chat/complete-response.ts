import type { ProtocolObject } from '../../ports/engines.ts'
import { StoppedByLimit } from '../engines/engine-failure.ts'
import type { Usage } from '../tokens/usage.ts'
import { MAX_CHOICES } from './sampling-fields.ts'

/** Most tool calls of one choice: far more than a model issues at once. */
export const MAX_CALLS_OF_CHOICE = 1_024

/**
 * Most characters of signed reasoning in one response, where each piece repeats all earlier ones. Fifty pieces of
 * 10,000 characters sum to 13 million.
 */
export const MAX_SIGNED_LENGTH = 32 * 2 ** 20

/** Identifiers of responses and models. The longest known ones have about a hundred characters. */
const NAME = /^[\w.:/@+=,|~-]{1,256}$/
/** Routers put Gemini's signatures, of some thousand characters, into tool call ids. */
const CALL_ID = /^[\w.:/@+=,|~-]{1,8192}$/
/** Facts that clients may compare, such as `fp_44709d6fcb` and `default`. */
const FACT = /^[\w.:/@+=-]{1,64}$/

const FINISH_REASONS: ReadonlySet<unknown> = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'])
/**
 * What vendors send in place of the protocol's reasons, if it does not mean `stop` or `tool_calls`: Mistral, vLLM,
 * DeepSeek, Zhipu, Gemini.
 */
const OTHER_REASONS: ReadonlyMap<unknown, string> = new Map([
  ...['model_length', 'max_tokens', 'max_output_tokens', 'abort', 'insufficient_system_resource'].map(
    (reason) => [reason, 'length'] as const,
  ),
  ...['safety', 'sensitive', 'recitation', 'blocklist', 'prohibited_content', 'spii'].map((reason) => [reason, 'content_filter'] as const),
])

/** Names for a response for which the engine sent none, or none that may be passed on. */
export interface ResponseNames {
  /** Creates an id: `chatcmpl-…` for the response, `call_…` for a tool call. */
  newId(kind: 'chatcmpl' | 'call'): string
  readonly model: string
  /** Unix seconds. */
  readonly created: number
}

/**
 * Returns a completion with every key that the protocol requires, because strictly typed clients fail on a missing one.
 * Everything else that the engine sent is unchanged, except names and facts that do not look valid, and a `usage` other
 * than the charged one, which the charged one replaces.
 * @throws {KisError} `engine_error`: the completion has more choices or tool calls than a valid one
 */
export function completedResponse(response: ProtocolObject, names: ResponseNames, usage: Usage): ProtocolObject {
  const { choices } = response
  if (Array.isArray(choices)) checkCount(choices.length, MAX_CHOICES, 'choices')
  return {
    ...withoutOddFacts(response),
    ...buildHead(response, 'chat.completion', names),
    ...(Array.isArray(choices) && { choices: choices.map((choice, index) => completedChoice(asObject(choice), index, names)) }),
    usage: completeUsage(response, usage),
  }
}

/** The fields that all chunks of a response share. */
export function buildHead({ id, created, model }: ProtocolObject, object: string, names: ResponseNames): ProtocolObject {
  return {
    id: matches(id, NAME) ? id : names.newId('chatcmpl'),
    object,
    created: Number.isSafeInteger(created) && (created as number) > 0 ? created : names.created,
    model: matches(model, NAME) ? model : names.model,
  }
}

/** Returns the response or chunk without a fingerprint or tier that does not look valid. */
export function withoutOddFacts(response: ProtocolObject): ProtocolObject {
  const isOdd = (fact: unknown) => fact !== undefined && fact !== null && !matches(fact, FACT)
  if (!isOdd(response.system_fingerprint) && !isOdd(response.service_tier)) return response
  const { system_fingerprint: fingerprint, service_tier: tier, ...rest } = response
  return { ...rest, ...(!isOdd(fingerprint) && { system_fingerprint: fingerprint }), ...(!isOdd(tier) && { service_tier: tier }) }
}

/** The id of a tool call. The caller also sends our ids back to the engine. */
export function toCallId(id: unknown, names: ResponseNames): string {
  return matches(id, CALL_ID) ? id : names.newId('call')
}

/** Returns the type of a tool call; `function` unless the engine sent `custom`. */
export function toCallType(type: unknown): 'function' | 'custom' {
  return type === 'custom' ? type : 'function'
}

/**
 * Returns one of the protocol's reasons, because clients decide by it what to do next. Null: the engine sent none. A
 * reason outside the protocol becomes `length` or `content_filter` if it is known to mean that, and otherwise the
 * default.
 */
export function toFinishReason(reason: unknown, hasCalls: boolean): string | null {
  if (!isText(reason)) return null
  return FINISH_REASONS.has(reason) ? reason : (OTHER_REASONS.get(reason.toLowerCase()) ?? defaultFinishReason(hasCalls))
}

/**
 * Returns the engine's usage if that is charged. Otherwise returns the charged usage in the protocol's form, which
 * counts cached tokens in the prompt tokens.
 */
export function completeUsage({ usage }: ProtocolObject, { quantities, source }: Usage): ProtocolObject {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = quantities
  const prompt = inputTokens + cachedInputTokens + cacheWriteTokens
  const tokens = { prompt_tokens: prompt, completion_tokens: outputTokens, total_tokens: prompt + outputTokens }
  if (source === 'provider') return { ...tokens, ...(usage as ProtocolObject | undefined) }
  const cache = { cached_tokens: cachedInputTokens, ...(cacheWriteTokens > 0 && { cache_write_tokens: cacheWriteTokens }) }
  return { ...tokens, ...(prompt > inputTokens && { prompt_tokens_details: cache }) }
}

/** @throws {StoppedByLimit} `engine_error` */
export function checkCount(count: number, most: number, what: string): void {
  if (count <= most) return
  throw new StoppedByLimit('engine_error', `The engine returned more than ${most} ${what}.`, { shouldRetry: false })
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function matches(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value)
}

export function isIndex(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

export function asObject(value: unknown): ProtocolObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ProtocolObject) : {}
}

/**
 * The finish reason for a choice for which the engine sent none. Clients wait for a reason, and run tool calls only
 * after `tool_calls`.
 */
export function defaultFinishReason(hasCalls: boolean): string {
  return hasCalls ? 'tool_calls' : 'stop'
}

function completedChoice(choice: ProtocolObject, position: number, names: ResponseNames): ProtocolObject {
  const message = asObject(choice.message)
  const calls = Array.isArray(message.tool_calls) && message.tool_calls.length > 0 ? message.tool_calls : undefined
  checkCount(calls?.length ?? 0, MAX_CALLS_OF_CHOICE, 'tool calls')
  return {
    ...choice,
    index: isIndex(choice.index) ? choice.index : position,
    message: {
      ...message,
      role: 'assistant',
      content: message.content ?? null,
      refusal: message.refusal ?? null,
      ...(calls && { tool_calls: calls.map((call) => completedCall(asObject(call), names)) }),
    },
    logprobs: choice.logprobs ?? null,
    finish_reason: toFinishReason(choice.finish_reason, calls !== undefined) ?? defaultFinishReason(calls !== undefined),
  }
}

function completedCall(call: ProtocolObject, names: ResponseNames): ProtocolObject {
  return { ...call, id: toCallId(call.id, names), type: toCallType(call.type) }
}
