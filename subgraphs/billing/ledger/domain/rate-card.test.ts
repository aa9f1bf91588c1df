import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { computePrice, NOTHING, type Quantities, type Rates, UNITS } from './money.ts'
import { computeWorstCase, fromStoredCard, type RateCard, ratesReached, toStoredCard } from './rate-card.ts'

/** USD per million, as prices are written. */
const rates = (input: bigint, cached: bigint, written: bigint, output: bigint): Rates => ({
  inputTokens: input,
  cachedInputTokens: cached,
  cacheWriteTokens: written,
  outputTokens: output,
  audioMilliseconds: 0n,
  searchUnits: 0n,
  pages: 0n,
})
const base = rates(2n, 1n, 3n, 10n)
const long = rates(4n, 2n, 6n, 15n)
const card: RateCard = { rates: base, tiers: [{ aboveInputTokens: 100, rates: long }] }
const used = (some: Partial<Quantities>): Quantities => ({ ...NOTHING, ...some })

describe('Tier of a call', () => {
  it.each<[string, Partial<Quantities>, Rates]>([
    ['is the base up to the threshold', { inputTokens: 100, outputTokens: 1_000 }, base],
    ['is the next tier above the threshold', { inputTokens: 101 }, long],
    ['counts cached and cache-written tokens as input', { inputTokens: 1, cachedInputTokens: 50, cacheWriteTokens: 50 }, long],
  ])('%s', (_name, quantities, expected) => expect(ratesReached(card, used(quantities))).toBe(expected))

  it('survives storage in a document', () => expect(fromStoredCard(toStoredCard(card))).toEqual(card))
})

describe('Worst-case price of a call', () => {
  const million = 1_000_000
  it('charges all input at the most expensive bucket', () =>
    expect(computeWorstCase({ rates: base, tiers: [] }, used({ inputTokens: million, outputTokens: million }))).toBe(13n))
  it('uses the most expensive tier that the ceiling reaches', () =>
    expect(computeWorstCase(card, used({ inputTokens: million, outputTokens: million }))).toBe(21n))
  it('ignores a tier that the ceiling cannot reach', () =>
    expect(computeWorstCase({ rates: base, tiers: [{ aboveInputTokens: million, rates: long }] }, used({ inputTokens: million }))).toBe(3n))
  it('uses the base where a higher tier is cheaper', () =>
    expect(computeWorstCase({ rates: long, tiers: [{ aboveInputTokens: 1, rates: base }] }, used({ inputTokens: million }))).toBe(6n))

  it('covers every call within the ceiling', () => {
    const quantity = fc.nat({ max: 3_000 })
    const anyRates = fc.tuple(...UNITS.map(() => fc.bigInt({ min: 0n, max: 10n ** 12n }))).map((values) => named(values) as Rates)
    const anyCard = fc.record({
      rates: anyRates,
      tiers: fc
        .uniqueArray(fc.record({ aboveInputTokens: fc.integer({ min: 1, max: 3_000 }), rates: anyRates }), {
          maxLength: 3,
          selector: ({ aboveInputTokens }) => aboveInputTokens,
        })
        .map((tiers) => tiers.toSorted((a, b) => a.aboveInputTokens - b.aboveInputTokens)),
    })
    fc.assert(
      fc.property(anyCard, fc.tuple(quantity, quantity, quantity, quantity, quantity), quantity, quantity, (some, values, more, output) => {
        const quantities = named(values) as Quantities
        const input = quantities.inputTokens + quantities.cachedInputTokens + quantities.cacheWriteTokens
        const ceiling = { ...quantities, inputTokens: input + more, cachedInputTokens: 0, cacheWriteTokens: 0 }
        const roomy = { ...ceiling, outputTokens: quantities.outputTokens + output }
        expect(computePrice(quantities, ratesReached(some, quantities)) <= computeWorstCase(some, roomy)).toBe(true)
      }),
    )
  })
})

function named<T>(values: readonly T[]): Readonly<Record<string, T>> {
  return Object.fromEntries(UNITS.map((unit, i) => [unit, values[i]!]))
}
