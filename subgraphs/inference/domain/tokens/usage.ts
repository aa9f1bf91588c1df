import { MAX_INT } from '../../../common/check.ts'
import type { Quantities } from '../../ports/billing.ts'
import type { ProtocolObject, TokenUsage } from '../../ports/engines.ts'

/** What a call used, and the source of the numbers. */
export interface Usage {
  readonly quantities: Quantities
  readonly source: 'provider' | 'counted' | 'estimated'
}

/**
 * Reads `usage` of a completion or chunk into units that do not overlap. Undefined: the engine sent no plausible usage.
 */
export function reportedUsage({ usage }: ProtocolObject): TokenUsage | undefined {
  if (typeof usage !== 'object' || usage === null) return undefined
  const { prompt_tokens: prompt, completion_tokens: completion, prompt_tokens_details: details } = usage as Record<string, unknown>
  if (!isCount(prompt) || !isCount(completion) || !isCount(prompt + completion)) return undefined
  const { cached_tokens: cached, cache_write_tokens: written } = (details ?? {}) as {
    cached_tokens?: unknown
    cache_write_tokens?: unknown
  }
  const cachedInputTokens = isCount(cached) ? Math.min(cached, prompt) : 0
  const cacheWriteTokens = isCount(written) ? Math.min(written, prompt - cachedInputTokens) : 0
  return { inputTokens: prompt - cachedInputTokens - cacheWriteTokens, cachedInputTokens, cacheWriteTokens, outputTokens: completion }
}

/**
 * The charged usage of a whole response: the engine's report, or the count where the report is missing. Zero for an
 * input or output that is not empty counts as missing.
 */
export function believedUsage(reported: TokenUsage | undefined, inputTokens: number, countOutput: () => number): Usage {
  if (!reported) return countedUsage(inputTokens, countOutput())
  const isInputMissing = inputTokens > 0 && sumInput(reported) === 0
  const output = reported.outputTokens || countOutput()
  if (!isInputMissing && output === reported.outputTokens) return providerUsage(reported)
  const believed = { ...reported, ...(isInputMissing && { inputTokens }), outputTokens: output }
  return { ...providerUsage(believed), source: 'counted' }
}

/** Whether the engine reported zero input or output tokens, where the usage of the whole response has counted ones. */
export function isZeroReported(reported: TokenUsage | undefined, { quantities }: Usage): boolean {
  if (!reported) return false
  const isInputZero = sumInput(reported) === 0 && sumInput(quantities) > 0
  return isInputZero || (reported.outputTokens === 0 && quantities.outputTokens > 0)
}

function sumInput({ inputTokens, cachedInputTokens, cacheWriteTokens }: Omit<TokenUsage, 'outputTokens'>): number {
  return inputTokens + cachedInputTokens + cacheWriteTokens
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

/** True for a plausible number of tokens. A report above an `Int` is wrong. */
export function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_INT
}
