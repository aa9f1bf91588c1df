import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FREE } from '../../test-support/world.ts'
import { computePrice, MAX_NANO_USD, NOTHING, type Quantities, type Rates, toStored, UNITS } from './money.ts'
import { fromStoredCard } from './rate-card.ts'
import { sumsOfRecord } from './usage-total.ts'

const quantities = (some: Partial<Quantities>): Quantities => ({ ...NOTHING, ...some })
const rates = (some: Partial<Rates>): Rates => ({ ...FREE, ...some })

describe('Price of a call', () => {
  for (const { name, used, card, expected } of [
    { name: 'is zero for no usage', used: {}, card: { inputTokens: 150_000_000n }, expected: 0n },
    { name: 'is zero on a free model', used: { inputTokens: 1_000 }, card: {}, expected: 0n },
    { name: 'rounds a fraction of a nano-USD up', used: { inputTokens: 1 }, card: { inputTokens: 1n }, expected: 1n },
    {
      name: 'does not round an exact price',
      used: { inputTokens: 1_000_000 },
      card: { inputTokens: 150_000_000n },
      expected: 150_000_000n,
    },
    {
      name: 'rounds once over the sum of the buckets',
      used: { inputTokens: 1, cachedInputTokens: 1, outputTokens: 1 },
      card: { inputTokens: 300_000n, cachedInputTokens: 300_000n, outputTokens: 300_000n },
      expected: 1n,
    },
    {
      name: 'adds every bucket at its own rate',
      used: { inputTokens: 1_000, cachedInputTokens: 2_000, cacheWriteTokens: 4_000, outputTokens: 3_000, audioMilliseconds: 60_000 },
      card: {
        inputTokens: 150_000_000n,
        cachedInputTokens: 75_000_000n,
        cacheWriteTokens: 187_500_000n,
        outputTokens: 600_000_000n,
        audioMilliseconds: 100_000_000n,
      },
      expected: 150_000n + 150_000n + 750_000n + 1_800_000n + 6_000_000n,
    },
    {
      name: 'stays exact above 2^53',
      used: { outputTokens: 2_147_483_647 },
      card: { outputTokens: MAX_NANO_USD },
      expected: 2_147_483_647n * 9_000_000_000n,
    },
  ])
    it(name, () => expect(computePrice(quantities(used), rates(card))).toBe(expected))

  it('is never below the exact price, and less than one nano-USD above it', () => {
    const anyQuantity = fc.nat({ max: 2 ** 31 - 1 })
    const anyRate = fc.bigInt({ min: 0n, max: MAX_NANO_USD })
    fc.assert(
      fc.property(
        fc.array(anyQuantity, { minLength: UNITS.length, maxLength: UNITS.length }),
        fc.array(anyRate, { minLength: UNITS.length, maxLength: UNITS.length }),
        (used, card) => {
          const exact = used.reduce((sum, quantity, i) => sum + BigInt(quantity) * card[i]!, 0n)
          const named = <T>(values: readonly T[]) => Object.fromEntries(UNITS.map((unit, i) => [unit, values[i]]))
          const price = computePrice(named(used) as Quantities, named(card) as Rates)
          expect(price * 1_000_000n - exact).toBeGreaterThanOrEqual(0n)
          expect(price * 1_000_000n - exact).toBeLessThan(1_000_000n)
        },
      ),
    )
  })
})

describe('Amount in a stored document', () => {
  it('is exact up to the largest balance', () => expect(BigInt(toStored(MAX_NANO_USD))).toBe(MAX_NANO_USD))
  it('is refused above it', () => expect(() => toStored(MAX_NANO_USD + 1n)).toThrow(RangeError))
})

it('records of earlier versions that lack a unit count none of it', () => {
  const without = <T extends object>({ searchUnits: _, pages: __, ...older }: T & Record<'searchUnits' | 'pages', unknown>) =>
    older as unknown as T
  const used = without({ ...NOTHING, inputTokens: 3 }) as Quantities
  const stored = without({ ...NOTHING, inputTokens: 2_000_000 }) as Quantities
  const { rates } = fromStoredCard({ rates: stored, tiers: [] })
  expect(computePrice(used, rates)).toBe(6n)
  expect(sumsOfRecord({ amount: 6, quantities: used }).quantities).toMatchObject({ inputTokens: 3n, searchUnits: 0n, pages: 0n })
})
