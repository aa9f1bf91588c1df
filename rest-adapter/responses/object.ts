import type { ChargedUsage } from '../chat/chat-operations.ts'
import type { JsonObject } from '../http/route.ts'

/** Returns the fields of a response that do not come from the model: its type and its settings. */
export function echoSettings(body: JsonObject): JsonObject {
  const text = (body.text ?? {}) as JsonObject
  const reasoning = (body.reasoning ?? {}) as JsonObject
  return {
    background: false,
    conversation: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    metadata: body.metadata ?? {},
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? reasoning.generate_summary ?? null },
    safety_identifier: body.safety_identifier ?? null,
    // With `auto` the vendor decides, and names its choice in a chunk.
    service_tier: body.service_tier === 'auto' ? 'default' : (body.service_tier ?? 'default'),
    store: false,
    temperature: body.temperature ?? null,
    text: { ...text, format: text.format ?? { type: 'text' } },
    tool_choice: body.tool_choice ?? 'auto',
    tools: ((body.tools ?? []) as readonly JsonObject[]).map((tool) => ({
      ...tool,
      parameters: tool.parameters ?? null,
      strict: tool.strict ?? null,
    })),
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? null,
    truncation: 'disabled',
    ...(typeof body.user === 'string' && { user: body.user }),
  }
}

/**
 * @param reported `usage` of the chat protocol, if the engine sent one
 * @param charged the charged usage, once it is known
 */
export function toUsage(reported: JsonObject | null, charged: ChargedUsage | null) {
  const { prompt_tokens_details: input, completion_tokens_details: output } = (reported ?? {}) as Record<
    string,
    JsonObject | null | undefined
  >
  const inputTokens = charged?.promptTokens ?? count(reported?.prompt_tokens)
  const outputTokens = charged?.completionTokens ?? count(reported?.completion_tokens)
  return {
    input_tokens: inputTokens,
    input_tokens_details: {
      cached_tokens: charged?.cachedPromptTokens ?? count(input?.cached_tokens),
      cache_write_tokens: charged?.cacheWritePromptTokens ?? count(input?.cache_write_tokens),
    },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: count(output?.reasoning_tokens) },
    total_tokens: inputTokens + outputTokens,
  }
}

function count(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0
}
