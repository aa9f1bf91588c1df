import { amountOf, computePrice, type Quantities, type Rates, toStored, UNITS, type Unit } from './money.ts'

/** The prices of one call, fixed when its hold is placed. */
export interface RateCard {
  readonly rates: Rates
  /** In order of rising `aboveInputTokens`. */
  readonly tiers: readonly RateTier[]
}

/** Prices of the whole call, output included, once its input is longer than this. */
interface RateTier {
  readonly aboveInputTokens: number
  readonly rates: Rates
}

/** A rate card as stored. */
export type StoredRateCard = {
  readonly rates: StoredRates
  readonly tiers: readonly { readonly aboveInputTokens: number; readonly rates: StoredRates }[]
}

/** Nano-USD per million units. */
export type StoredRates = Readonly<Record<Unit, number>>

/** The units whose sum is the length of a call's input. */
const INPUT_UNITS = ['inputTokens', 'cachedInputTokens', 'cacheWriteTokens'] as const

/** The rates for these quantities: those of the highest tier that the input exceeds. */
export function ratesReached({ rates, tiers }: RateCard, quantities: Quantities): Rates {
  const input = countInput(quantities)
  return tiers.findLast(({ aboveInputTokens }) => input > aboveInputTokens)?.rates ?? rates
}

/**
 * The most that a call within the ceiling can cost. All input counts at the highest rate of the input units, because
 * only the answer shows what was cached, and at the most expensive tier that the ceiling reaches, which need not be the
 * highest.
 */
export function computeWorstCase({ rates, tiers }: RateCard, ceiling: Quantities): bigint {
  const input = countInput(ceiling)
  const reachable = [rates, ...tiers.filter(({ aboveInputTokens }) => input > aboveInputTokens).map((tier) => tier.rates)]
  const costs = reachable.map((some) => {
    const mostExpensive = INPUT_UNITS.map((unit) => some[unit]).reduce((a, b) => (a > b ? a : b))
    return computePrice(
      { ...ceiling, inputTokens: input, cachedInputTokens: 0, cacheWriteTokens: 0 },
      { ...some, inputTokens: mostExpensive },
    )
  })
  return costs.reduce((a, b) => (a > b ? a : b))
}

export function toStoredCard({ rates, tiers }: RateCard): StoredRateCard {
  return {
    rates: toStoredRates(rates),
    tiers: tiers.map((tier) => ({ aboveInputTokens: tier.aboveInputTokens, rates: toStoredRates(tier.rates) })),
  }
}

export function fromStoredCard({ rates, tiers }: StoredRateCard): RateCard {
  return {
    rates: fromStoredRates(rates),
    tiers: tiers.map((tier) => ({ aboveInputTokens: tier.aboveInputTokens, rates: fromStoredRates(tier.rates) })),
  }
}

export function toStoredRates(rates: Rates): StoredRates {
  return Object.fromEntries(UNITS.map((unit) => [unit, toStored(rates[unit])])) as Record<Unit, number>
}

export function fromStoredRates(rates: StoredRates): Rates {
  return Object.fromEntries(UNITS.map((unit) => [unit, BigInt(amountOf(rates, unit))])) as Record<Unit, bigint>
}

function countInput(quantities: Quantities): number {
  return INPUT_UNITS.reduce((sum, unit) => sum + quantities[unit], 0)
}
