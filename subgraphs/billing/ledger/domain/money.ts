/**
 * Units that a call may consume. They do not overlap: input tokens that the engine read from or wrote to its cache are
 * not counted as `inputTokens`.
 */
export const UNITS = [
  'inputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'outputTokens',
  'audioMilliseconds',
  'searchUnits',
  'pages',
] as const
export type Unit = (typeof UNITS)[number]

/** Whole numbers, 0 or more. */
export type Quantities = Readonly<Record<Unit, number>>

/** A call that consumed nothing. */
export const NOTHING: Quantities = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  audioMilliseconds: 0,
  searchUnits: 0,
  pages: 0,
}

/** Nano-USD per million units, 0 or more. */
export type Rates = Readonly<Record<Unit, bigint>>

/**
 * 9,000,000 USD in nano-USD: the highest balance, charge or rate. Documents store amounts as integers that JavaScript
 * numbers represent exactly, up to 9,007,199 USD.
 */
export const MAX_NANO_USD = 9_000_000_000_000_000n

/** Returns a quantity or rate of a record. Records of earlier versions lack the units that did not exist yet. */
export function amountOf<T>(amounts: Readonly<Record<Unit, T>>, unit: Unit): T | 0 {
  return amounts[unit] ?? 0
}

/**
 * Returns the charge in nano-USD. The whole sum is rounded up once, so splitting a quantity over units cannot add to
 * it.
 */
export function computePrice(quantities: Quantities, rates: Rates): bigint {
  let millionths = 0n
  for (const unit of UNITS) millionths += BigInt(amountOf(quantities, unit)) * rates[unit]
  return (millionths + 999_999n) / 1_000_000n
}

/**
 * Converts an amount to its stored form.
 * @throws {RangeError} a number cannot represent the amount exactly: a defect of the caller
 */
export function toStored(nanoUsd: bigint): number {
  if (nanoUsd > MAX_NANO_USD || nanoUsd < -MAX_NANO_USD) throw new RangeError(`${nanoUsd} nano-USD do not fit a document`)
  return Number(nanoUsd)
}
