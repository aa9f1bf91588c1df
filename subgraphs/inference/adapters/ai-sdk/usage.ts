import type { LanguageModelV4Usage } from '@ai-sdk/provider'
import type { ProtocolObject } from '../../ports/engines.ts'
import type { Vendor } from './vendors.ts'

/** Returns the protocol's `usage`, or undefined when the vendor reported none. */
export function toUsage(vendor: Vendor, usage: LanguageModelV4Usage): ProtocolObject | undefined {
  const billed = vendor.readBilled?.(usage.raw)
  const prompt = billed?.input ?? usage.inputTokens.total
  const completion = billed?.output ?? usage.outputTokens.total
  if (!isCount(prompt) || !isCount(completion)) return undefined
  const cached = billed?.cached ?? usage.inputTokens.cacheRead
  const written = billed ? undefined : usage.inputTokens.cacheWrite
  const cachedTokens = isCount(cached) ? Math.min(cached, prompt) : 0
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: cachedTokens,
      ...(isCount(written) && written > 0 && { cache_write_tokens: Math.min(written, prompt - cachedTokens) }),
    },
    completion_tokens_details: { reasoning_tokens: isCount(usage.outputTokens.reasoning) ? usage.outputTokens.reasoning : 0 },
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
