import { messageCitations } from '../chat/annotations.ts'
import type { ChargedUsage, ChatResult } from '../chat/chat-operations.ts'
import type { JsonObject } from '../http/route.ts'
import { blockOfCall, blockOfDetail, type ReasoningBlock, unsignedSignature } from './reasoning.ts'

/** How an answer ended, as the chat protocol says in its one choice or in chunks. */
export interface Ending {
  finishReason: unknown
  /** The stop text that was met, in vLLM's field. The protocol itself does not say. */
  stopText: unknown
  refusal: string
  hasToolCalls: boolean
}

const STOP_REASONS: Readonly<Record<string, string>> = {
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'refusal',
}

/** Turns a completion of the chat protocol into a message. `newId` names calls that the engine left without an id. */
export function toMessage({ response, usage }: ChatResult, hidesThinking: boolean, newId: () => string): JsonObject {
  const { id, model, choices } = response as JsonObject & { readonly choices?: readonly JsonObject[] }
  const choice = (Array.isArray(choices) ? choices[0] : undefined) ?? {}
  const message = (choice.message ?? {}) as JsonObject
  const calls = Array.isArray(message.tool_calls) ? (message.tool_calls as readonly JsonObject[]) : []
  const content = [
    ...reasoningBlocks(message).map((block) => (hidesThinking ? hidden(block) : block)),
    ...(typeof message.content === 'string' && message.content !== ''
      ? [textBlock(message.content, messageCitations(message.annotations))]
      : []),
    ...calls.flatMap((call) => {
      const { name, arguments: input } = (call.function ?? {}) as JsonObject
      return [blockOfCall(call) ?? [], toolUseBlock(call.id ?? newId(), name, parseInput(input))].flat()
    }),
  ]
  return {
    ...messageHead(id, model),
    content,
    ...describeEnd({
      finishReason: choice.finish_reason,
      stopText: choice.stop_reason,
      refusal: typeof message.refusal === 'string' ? message.refusal : '',
      hasToolCalls: calls.length > 0,
    }),
    usage: messageUsage(usage, response.usage),
  }
}

export function messageHead(id: unknown, model: unknown): JsonObject {
  return { id: String(id ?? ''), type: 'message', role: 'assistant', model: String(model ?? ''), container: null, diagnostics: null }
}

/** Without citations it has no such field: some clients refuse null. */
export function textBlock(text: string, citations: readonly JsonObject[] = []): JsonObject {
  return { type: 'text', text, ...(citations.length > 0 && { citations }) }
}

export function toolUseBlock(id: unknown, name: unknown, input: JsonObject): JsonObject {
  return { type: 'tool_use', id: String(id), name: String(name ?? ''), input, caller: { type: 'direct' } }
}

export function describeEnd({ finishReason, stopText, refusal, hasToolCalls }: Ending): JsonObject {
  const hasRefused = refusal !== ''
  const stopSequence = typeof stopText === 'string' && finishReason === 'stop' ? stopText : null
  const reason = hasRefused
    ? 'refusal'
    : (STOP_REASONS[String(finishReason)] ?? (hasToolCalls ? 'tool_use' : stopSequence === null ? 'end_turn' : 'stop_sequence'))
  return {
    stop_reason: reason,
    stop_sequence: reason === 'stop_sequence' ? stopSequence : null,
    stop_details: reason === 'refusal' ? { type: 'refusal', category: null, explanation: hasRefused ? refusal : null } : null,
  }
}

/**
 * The charged usage in the API's disjoint counts. `reported` is the engine's own report, the only source for thinking
 * tokens.
 */
export function messageUsage(charged: ChargedUsage, reported: unknown): JsonObject {
  const { promptTokens, cachedPromptTokens, cacheWritePromptTokens, completionTokens } = charged
  const { completion_tokens_details: details } = (reported ?? {}) as { readonly completion_tokens_details?: JsonObject | null }
  const thinking = details?.reasoning_tokens
  return {
    input_tokens: promptTokens - cachedPromptTokens - cacheWritePromptTokens,
    cache_creation_input_tokens: cacheWritePromptTokens,
    cache_read_input_tokens: cachedPromptTokens,
    output_tokens: completionTokens,
    output_tokens_details: typeof thinking === 'number' ? { thinking_tokens: thinking } : null,
    server_tool_use: null,
  }
}

/** The text of a model's reasoning, in the fields of vLLM and DeepSeek, or of OpenRouter. */
export function readReasoningText({ reasoning_content: content, reasoning }: JsonObject): string {
  const text = content ?? reasoning
  return typeof text === 'string' ? text : ''
}

function reasoningBlocks(message: JsonObject): readonly ReasoningBlock[] {
  const details = Array.isArray(message.reasoning_details) ? message.reasoning_details : []
  const signed = details.flatMap((detail) => blockOfDetail(detail) ?? [])
  const thinking = readReasoningText(message)
  // Signed pieces repeat the text.
  return thinking === '' || signed.some(({ type }) => type === 'thinking')
    ? signed
    : [{ type: 'thinking', thinking, signature: unsignedSignature() }, ...signed]
}

function hidden(block: ReasoningBlock): ReasoningBlock {
  return block.type === 'thinking' ? { ...block, thinking: '' } : block
}

/** The arguments as an object, as the API requires. Other text of the model goes into an object as it is. */
function parseInput(text: unknown): JsonObject {
  if (typeof text !== 'string' || text.trim() === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject
  } catch {}
  return { arguments: text }
}
