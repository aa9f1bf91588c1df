import { MAX_INT } from '../../../common/int.ts'
import type { Quantities } from '../../ports/billing.ts'
import type { ProtocolObject, TokenUsage } from '../../ports/engines.ts'

/** What a call used, and the source of the numbers. */
export interface Usage {
  readonly quantities: Quantities
  readonly source: 'provider' | 'counted' | 'estimated'
}

/**
 * `usage` of a completion or chunk in units that do not overlap; undefined when the engine gave none. Zero is a number
 * like any other.
 */
export function reportedUsage({ usage }: ProtocolObject): TokenUsage | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined
  const { prompt_tokens: prompt, completion_tokens: completion, prompt_tokens_details: details } = usage as Record<string, unknown>
  if (!isCount(prompt) || !isCount(completion)) return undefined
  const { cached_tokens: cached, cache_write_tokens: written } = (details ?? {}) as {
    cached_tokens?: unknown
    cache_write_tokens?: unknown
  }
  const cachedInputTokens = isCount(cached) ? Math.min(cached, prompt) : 0
  const cacheWriteTokens = isCount(written) ? Math.min(written, prompt - cachedInputTokens) : 0
  return { inputTokens: prompt - cachedInputTokens - cacheWriteTokens, cachedInputTokens, cacheWriteTokens, outputTokens: completion }
}

export function providerUsage(tokens: TokenUsage): Usage {
  return { quantities: { ...tokens, audioMilliseconds: 0, searchUnits: 0 }, source: 'provider' }
}

export function countedUsage(inputTokens: number, outputTokens: number): Usage {
  return { quantities: toQuantities(inputTokens, outputTokens), source: 'counted' }
}

export function toQuantities(inputTokens: number, outputTokens: number): Quantities {
  return { inputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens, audioMilliseconds: 0, searchUnits: 0 }
}

/** True for a plausible number of tokens. An engine that reports more than an `Int` is wrong. */
export function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_INT
}
