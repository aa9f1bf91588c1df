/**
 * What a call may consume. The buckets are disjoint: input tokens that the engine read from its cache, or wrote to it, are not among the
 * input tokens.
 */
export const UNITS = ['inputTokens', 'cachedInputTokens', 'cacheWriteTokens', 'outputTokens', 'audioMilliseconds'] as const
export type Unit = (typeof UNITS)[number]

/** Whole numbers, 0 or more. */
export type Quantities = Readonly<Record<Unit, number>>

export const NOTHING: Quantities = { inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0, audioMilliseconds: 0 }

/** Nano-USD per million units, 0 or more. */
export type Rates = Readonly<Record<Unit, bigint>>

/**
 * 9,000,000 USD in nano-USD: the most that a balance, a charge or a rate may be. Documents hold amounts as integers that are exact as
 * JavaScript numbers, which end at 9,007,199 USD.
 */
export const MAX_NANO_USD = 9_000_000_000_000_000n

/** The charge in nano-USD. Rounded once and up, over the whole sum, so that splitting a quantity over buckets cannot add to it. */
export function priceOf(quantities: Quantities, rates: Rates): bigint {
  let millionths = 0n
  for (const unit of UNITS) millionths += BigInt(quantities[unit]) * rates[unit]
  return (millionths + 999_999n) / 1_000_000n
}

/** An amount as documents hold it. @throws {RangeError} it is not exact as a number: a defect of the caller. */
export function toStored(nanoUsd: bigint): number {
  if (nanoUsd > MAX_NANO_USD || nanoUsd < -MAX_NANO_USD) throw new RangeError(`${nanoUsd} nano-USD do not fit a document`)
  return Number(nanoUsd)
}
