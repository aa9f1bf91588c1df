import { KisError } from '../../../common/errors.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { reportedUsage, type Usage } from '../tokens/usage.ts'
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
 * the engine said stays unchanged. If it gave no `usage`, it becomes the usage by which the call is charged.
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
 * The engine's usage, or else the counted one as the protocol writes it, with cached tokens included in the prompt's.
 */
export function completeUsage({ usage }: ProtocolObject, counted: Usage): ProtocolObject {
  if (reportedUsage({ usage })) {
    const { prompt_tokens: prompt, completion_tokens: completion } = usage as Readonly<Record<string, number>>
    return { total_tokens: prompt! + completion!, ...(usage as ProtocolObject) }
  }
  const { inputTokens, cachedInputTokens, outputTokens } = counted.quantities
  const prompt = inputTokens + cachedInputTokens
  return { prompt_tokens: prompt, completion_tokens: outputTokens, total_tokens: prompt + outputTokens }
}

/** @throws {KisError} `engine_error` */
export function checkCount(count: number, most: number, what: string): void {
  if (count > most) throw new KisError('engine_error', `The engine gave an answer of more than ${most} ${what}.`)
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
