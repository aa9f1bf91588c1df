import type { LanguageModelV4FinishReason, LanguageModelV4GenerateResult, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { ProtocolObject } from '../../ports/engines.ts'
import { type ReasoningDetail, toReasoningDetail } from './reasoning-details.ts'
import { toUsage } from './usage.ts'
import type { Vendor } from './vendors.ts'

/** Names for a response without names of the vendor. */
export interface ResponseFacts {
  readonly id: string
  readonly model: string
  /** Unix seconds. */
  readonly created: number
}

/** Converts the SDK's result to the protocol's completion. */
export function toCompletion(vendor: Vendor, result: LanguageModelV4GenerateResult, facts: ResponseFacts): ProtocolObject {
  let text = ''
  let reasoning = ''
  const details: ReasoningDetail[] = []
  const toolCalls: ProtocolObject[] = []
  for (const part of result.content) {
    if (part.type === 'text') text += part.text
    else if (part.type === 'reasoning') {
      reasoning += part.text
      const detail = toReasoningDetail(vendor, part.text, part.providerMetadata, details.length)
      if (detail) details.push(detail)
    } else if (part.type === 'tool-call' && !part.providerExecuted) {
      toolCalls.push({
        id: part.toolCallId,
        type: 'function',
        function: { name: part.toolName, arguments: part.input || '{}' },
        ...toExtraContent(part.providerMetadata),
      })
    }
  }
  const refusal = readRefusal(vendor, result.providerMetadata)
  const isSilent = text === '' && (toolCalls.length > 0 || refusal !== null || result.finishReason.unified === 'content-filter')
  const usage = toUsage(vendor, result.usage)
  return {
    id: result.response?.id ?? facts.id,
    object: 'chat.completion',
    created: toCreated(result.response?.timestamp, facts),
    model: result.response?.modelId ?? facts.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: isSilent ? null : text,
          refusal,
          ...(reasoning !== '' && { reasoning_content: reasoning }),
          ...(details.length > 0 && { reasoning_details: details }),
          ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
        },
        logprobs: null,
        finish_reason: toFinishReason(result.finishReason, toolCalls.length > 0),
        ...toStopText(vendor, result.providerMetadata),
      },
    ],
    ...(usage && { usage }),
  }
}

/** Returns the `created` of a response: the vendor's time in Unix seconds or, without one, ours. */
export function toCreated(timestamp: Date | undefined, { created }: ResponseFacts): number {
  const seconds = timestamp ? Math.floor(timestamp.getTime() / 1_000) : Number.NaN
  return Number.isFinite(seconds) ? seconds : created
}

/**
 * Classifies how a response ended by the vendor's report: it is whole, the vendor failed, or the report is missing, as
 * in the SDK's result for a response that was cut off.
 */
export function classifyEnd({ unified, raw }: LanguageModelV4FinishReason): 'whole' | 'failed' | 'cut' {
  if (raw === undefined) return 'cut'
  // Mistral's word, which the SDK does not know.
  return unified === 'error' || raw === 'error' ? 'failed' : 'whole'
}

/**
 * The finish reason of the protocol. Clients run tool calls only after `tool_calls`, which some vendors do not report.
 */
export function toFinishReason({ unified }: LanguageModelV4FinishReason, hasToolCalls: boolean): string {
  if (unified === 'length') return 'length'
  if (unified === 'content-filter') return 'content_filter'
  return hasToolCalls ? 'tool_calls' : 'stop'
}

/**
 * Gemini signs its tool calls and requires the signature in the next request. The field is that of Google's own server
 * of the protocol.
 */
export function toExtraContent(metadata: SharedV4ProviderMetadata | undefined): ProtocolObject {
  const signature = metadata?.google?.thoughtSignature
  return typeof signature === 'string' ? { extra_content: { google: { thought_signature: signature } } } : {}
}

/** The stop text that was matched, in vLLM's field: the protocol has none. */
export function toStopText({ optionsKey }: Vendor, metadata: SharedV4ProviderMetadata | undefined): ProtocolObject {
  const text = metadata?.[optionsKey]?.stopSequence
  return typeof text === 'string' ? { stop_reason: text } : {}
}

/** The vendor's reason for a refusal. */
export function readRefusal({ optionsKey }: Vendor, metadata: SharedV4ProviderMetadata | undefined): string | null {
  const details = metadata?.[optionsKey]?.stopDetails as { readonly type?: unknown; readonly explanation?: unknown } | null | undefined
  return details?.type === 'refusal' && typeof details.explanation === 'string' ? details.explanation : null
}
