import { MAX_NANO_USD } from './money.ts'

/** Days and months are UTC. `total` never resets. */
export type SpendPeriod = 'day' | 'month' | 'total'

/** The most that a key may spend in a period, in nano-USD as stored. */
export type SpendLimit = { readonly amount: number; readonly period: SpendPeriod }

/**
 * What one key and its descendants were charged: the sums of their usage records on `day`, in its month, and in total.
 * Kept in the wallet, so that the write that reserves money also enforces the limit.
 */
export type KeySpending = {
  readonly limit: SpendLimit | null
  /** `2026-11-21`: the day of the latest charge. */
  readonly day: string
  readonly daySpent: number
  readonly monthSpent: number
  readonly totalSpent: number
}

export const NOTHING_SPENT: KeySpending = { limit: null, day: '0000-00-00', daySpent: 0, monthSpent: 0, totalSpent: 0 }

/**
 * The counters after a charge. A clock that goes back does not return to an earlier period: the charge counts in the
 * later one.
 */
export function spendingAfter(before: KeySpending, charged: number, at: Date): KeySpending {
  const { day, daySpent, monthSpent, totalSpent } = rollOver(before, at)
  return {
    limit: before.limit,
    day,
    daySpent: clamped(daySpent + charged),
    monthSpent: clamped(monthSpent + charged),
    totalSpent: clamped(totalSpent + charged),
  }
}

export function spentIn(spending: KeySpending, period: SpendPeriod, at: Date): number {
  const { daySpent, monthSpent, totalSpent } = rollOver(spending, at)
  return { day: daySpent, month: monthSpent, total: totalSpent }[period]
}

/** When the period resets; null: never. */
export function nextReset(period: SpendPeriod, at: Date): Date | null {
  if (period === 'total') return null
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()]
  return new Date(period === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1))
}

function rollOver(spending: KeySpending, at: Date): KeySpending {
  const day = at.toISOString().slice(0, 10)
  if (day <= spending.day) return spending
  const isSameMonth = day.slice(0, 7) === spending.day.slice(0, 7)
  return { ...spending, day, daySpent: 0, monthSpent: isSameMonth ? spending.monthSpent : 0 }
}

/** No limit is higher, so larger sums need not be exact. */
function clamped(amount: number): number {
  return Math.min(amount, Number(MAX_NANO_USD))
}
