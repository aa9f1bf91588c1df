import type { ProtocolObject } from '../../ports/engines.ts'

/**
 * Typed views of a completion and of chunks. Computed only when asked for. An unexpected answer of an engine gives
 * nulls, never a failure.
 */

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

interface Choice {
  readonly index?: unknown
  readonly message?: Readonly<Record<string, unknown>> | null
  readonly delta?: Readonly<Record<string, unknown>> | null
  readonly finish_reason?: unknown
}

const FINISH_REASONS = ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'] as const
type FinishReason = (typeof FINISH_REASONS)[number]

export function readChoices({ choices }: ProtocolObject): readonly Choice[] {
  return Array.isArray(choices) ? choices.filter((choice) => typeof choice === 'object' && choice !== null) : []
}

export function readText({ message }: Choice): string | null {
  return textOrNull(message?.content)
}

export function readRefusal({ message }: Choice): string | null {
  return textOrNull(message?.refusal)
}

export function readFinishReason({ finish_reason }: Choice): FinishReason | null {
  return FINISH_REASONS.find((reason) => reason === finish_reason) ?? null
}

export function readToolCalls({ message }: Choice): readonly ToolCall[] {
  if (!Array.isArray(message?.tool_calls)) return []
  return message.tool_calls.map((call) => ({
    id: String(call?.id ?? ''),
    name: String(call?.function?.name ?? ''),
    arguments: String(call?.function?.arguments ?? ''),
  }))
}

/** What the chunks say about the first choice. */
export function firstChoiceDelta(chunks: readonly ProtocolObject[]): { readonly text: string; readonly finishReason: FinishReason | null } {
  let text = ''
  let finishReason: FinishReason | null = null
  for (const choice of chunks.flatMap(readChoices)) {
    if ((choice.index ?? 0) !== 0) continue
    text += textOrNull(choice.delta?.content) ?? ''
    finishReason = readFinishReason(choice) ?? finishReason
  }
  return { text, finishReason }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
