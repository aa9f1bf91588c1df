import type { ProtocolObject } from '../../ports/engines.ts'
import { StoppedByLimit } from '../engines/engine-failure.ts'
import type { Usage } from '../tokens/usage.ts'
import { MAX_CHOICES } from './sampling-fields.ts'

/** Calls of tools of one choice: far more than a model makes at once. */
export const MAX_CALLS_OF_CHOICE = 1_024

/**
 * Characters of signed reasoning that one answer sends, each piece with all before it. Fifty pieces of 10,000 take 13
 * million.
 */
export const MAX_SIGNED_LENGTH = 32 * 2 ** 20

/** Names for an answer to which the engine gave none. */
export interface AnswerNames {
  /** Makes an id: `chatcmpl-…` for the answer, `call_…` for a tool call. */
  newId(kind: 'chatcmpl' | 'call'): string
  readonly model: string
  /** Unix seconds. */
  readonly created: number
}

/**
 * A completion with every key that the protocol requires, because strictly typed clients fail on a missing one. What
 * the engine said stays unchanged, but for a `usage` by which the call is not charged: it becomes the charged one.
 * @throws {KisError} `engine_error`: it has more choices or calls of tools than a right answer
 */
export function completedAnswer(answer: ProtocolObject, names: AnswerNames, usage: Usage): ProtocolObject {
  const { choices } = answer
  if (Array.isArray(choices)) checkCount(choices.length, MAX_CHOICES, 'choices')
  return {
    ...answer,
    ...buildHead(answer, 'chat.completion', names),
    ...(Array.isArray(choices) && { choices: choices.map((choice, index) => completedChoice(asObject(choice), index, names)) }),
    usage: completeUsage(answer, usage),
  }
}

/** The head of an answer, the same in all its chunks. */
export function buildHead({ id, created, model }: ProtocolObject, object: string, names: AnswerNames): ProtocolObject {
  return {
    id: isText(id) ? id : names.newId('chatcmpl'),
    object,
    created: Number.isSafeInteger(created) && (created as number) > 0 ? created : names.created,
    model: isText(model) ? model : names.model,
  }
}

/**
 * The engine's usage if it is charged, or else what is charged as the protocol writes it, with cached tokens included in
 * the prompt's.
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
  throw new StoppedByLimit('engine_error', `The engine gave an answer of more than ${most} ${what}.`, { shouldRetry: false })
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

export function isIndex(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

export function asObject(value: unknown): ProtocolObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as ProtocolObject) : {}
}

/**
 * The finish reason for a choice to which the engine gave none. Clients wait for one, and answer tool calls only after
 * `tool_calls`.
 */
export function defaultFinishReason(hasCalls: boolean): string {
  return hasCalls ? 'tool_calls' : 'stop'
}

function completedChoice(choice: ProtocolObject, position: number, names: AnswerNames): ProtocolObject {
  const message = asObject(choice.message)
  const calls = Array.isArray(message.tool_calls) && message.tool_calls.length > 0 ? message.tool_calls : undefined
  checkCount(calls?.length ?? 0, MAX_CALLS_OF_CHOICE, 'calls of tools')
  return {
    ...choice,
    index: isIndex(choice.index) ? choice.index : position,
    message: {
      ...message,
      role: message.role ?? 'assistant',
      content: message.content ?? null,
      refusal: message.refusal ?? null,
      ...(calls && { tool_calls: calls.map((call) => completedCall(asObject(call), names)) }),
    },
    logprobs: choice.logprobs ?? null,
    finish_reason: isText(choice.finish_reason) ? choice.finish_reason : defaultFinishReason(calls !== undefined),
  }
}

function completedCall(call: ProtocolObject, names: AnswerNames): ProtocolObject {
  return { ...call, id: isText(call.id) ? call.id : names.newId('call'), type: call.type ?? 'function' }
}
