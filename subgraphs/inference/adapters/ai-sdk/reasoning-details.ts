import type { LanguageModelV4ReasoningPart, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { Vendor } from './vendors.ts'

/**
 * A signed piece of reasoning, in the form that clients of the protocol already carry (OpenRouter's
 * `reasoning_details`). A vendor that signs its reasoning requires it, unchanged, with the results of its tool calls.
 */
export interface ReasoningDetail {
  readonly type: 'reasoning.text' | 'reasoning.encrypted'
  readonly text?: string
  readonly signature?: string
  readonly data?: string
  /** The kind of the engine that signed the piece. Other engines do not accept it. */
  readonly format: string
  readonly index: number
}

/** Returns the detail for a piece of reasoning that the vendor signed. */
export function toReasoningDetail(
  vendor: Vendor,
  text: string,
  metadata: SharedV4ProviderMetadata | undefined,
  index: number,
): ReasoningDetail | undefined {
  const { signature, redactedData } = metadata?.[vendor.optionsKey] ?? {}
  if (typeof signature === 'string') return { type: 'reasoning.text', text, signature, format: vendor.kind, index }
  if (typeof redactedData === 'string') return { type: 'reasoning.encrypted', data: redactedData, format: vendor.kind, index }
  return undefined
}

/** Leaves out details that another engine signed, and malformed ones. */
export function toReasoningParts(vendor: Vendor, details: readonly ReasoningDetail[] | null | undefined): LanguageModelV4ReasoningPart[] {
  if (!Array.isArray(details)) return []
  return (details as readonly (ReasoningDetail | null)[]).flatMap((detail): LanguageModelV4ReasoningPart[] => {
    if (detail?.format !== vendor.kind) return []
    const { text, signature, data } = detail
    if (typeof text === 'string' && typeof signature === 'string')
      return [{ type: 'reasoning', text, providerOptions: { [vendor.optionsKey]: { signature } } }]
    if (typeof data === 'string') return [{ type: 'reasoning', text: '', providerOptions: { [vendor.optionsKey]: { redactedData: data } } }]
    return []
  })
}
