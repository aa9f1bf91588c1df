import { describe, expect, it } from 'vitest'
import { NOTHING_SPENT, nextReset, spendingAfter, spentIn } from './key-spending.ts'

const at = (text: string) => new Date(text)
const charged = (...charges: readonly (readonly [amount: number, at: string])[]) =>
  charges.reduce((spending, [amount, when]) => spendingAfter(spending, amount, at(when)), NOTHING_SPENT)

describe('Spending of a key', () => {
  const spending = charged([1, '2026-10-31T23:59:59.999Z'], [2, '2026-11-01T00:00:00.000Z'], [4, '2026-11-21T08:00:00.000Z'])
  it.each([
    ['day', '2026-11-21T23:59:59.999Z', 4],
    ['day', '2026-11-22T00:00:00.000Z', 0],
    ['month', '2026-11-30T23:59:59.999Z', 6],
    ['month', '2026-12-01T00:00:00.000Z', 0],
    ['month', '2027-11-21T00:00:00.000Z', 0],
    ['total', '2030-01-01T00:00:00.000Z', 7],
  ] as const)('in the %s at %s is %d', (period, when, expected) => expect(spentIn(spending, period, at(when))).toBe(expected))

  it('stays in the later day when the clock goes back', () => {
    const later = charged([1, '2026-11-22T00:00:00.000Z'], [2, '2026-11-21T23:59:59.000Z'])
    expect(spentIn(later, 'day', at('2026-11-21T23:59:59.000Z'))).toBe(3)
    expect(later.day).toBe('2026-11-22')
  })

  it('is exact up to the highest possible limit', () =>
    expect(charged([9_000_000_000_000_000, '2026-11-21T00:00:00.000Z'], [1, '2026-11-21T00:00:00.000Z']).totalSpent).toBe(
      9_000_000_000_000_000,
    ))
})

it.each([
  ['day', '2026-12-31T12:00:00.000Z', '2027-01-01T00:00:00.000Z'],
  ['month', '2026-12-31T12:00:00.000Z', '2027-01-01T00:00:00.000Z'],
  ['month', '2028-02-01T00:00:00.000Z', '2028-03-01T00:00:00.000Z'],
] as const)('the %s of %s ends at %s', (period, when, end) => expect(nextReset(period, at(when))?.toISOString()).toBe(end))

it('the period of all time does not end', () => expect(nextReset('total', at('2026-11-21T00:00:00.000Z'))).toBeNull())
