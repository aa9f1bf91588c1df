import { MAX_NANO_USD } from './money.ts'

/** Days and months of UTC; `total` never begins anew. */
export type SpendPeriod = 'day' | 'month' | 'total'

/** The most that a key may spend in a period, in nano-USD, as documents hold it. */
export type SpendLimit = { readonly amount: number; readonly period: SpendPeriod }

/**
 * What one key and its descendants were charged, kept in the wallet, so that a limit is judged by the write that reserves money. It is the sum
 * of their usage records: those of `day`, of its month, and of all time.
 */
export type KeySpending = {
  readonly limit: SpendLimit | null
  /** `2026-11-21`: of the newest charge. */
  readonly day: string
  readonly daySpent: number
  readonly monthSpent: number
  readonly totalSpent: number
}

export const NOTHING_SPENT: KeySpending = { limit: null, day: '0000-00-00', daySpent: 0, monthSpent: 0, totalSpent: 0 }

/** The counters after a charge. A clock that goes back a little does not bring an earlier period back: the charge counts in the later one. */
export function spendingAfter(before: KeySpending, charged: number, at: Date): KeySpending {
  const { day, daySpent, monthSpent, totalSpent } = inPeriodOf(before, at)
  return {
    limit: before.limit,
    day,
    daySpent: bounded(daySpent + charged),
    monthSpent: bounded(monthSpent + charged),
    totalSpent: bounded(totalSpent + charged),
  }
}

export function spentIn(spending: KeySpending, period: SpendPeriod, at: Date): number {
  const { daySpent, monthSpent, totalSpent } = inPeriodOf(spending, at)
  return { day: daySpent, month: monthSpent, total: totalSpent }[period]
}

/** When the period begins anew; null: never. */
export function resetOf(period: SpendPeriod, at: Date): Date | null {
  if (period === 'total') return null
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()]
  return new Date(period === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1))
}

function inPeriodOf(spending: KeySpending, at: Date): KeySpending {
  const day = at.toISOString().slice(0, 10)
  if (day <= spending.day) return spending
  const isSameMonth = day.slice(0, 7) === spending.day.slice(0, 7)
  return { ...spending, day, daySpent: 0, monthSpent: isSameMonth ? spending.monthSpent : 0 }
}

/** No limit is above it, so that more need not be told apart. */
function bounded(amount: number): number {
  return Math.min(amount, Number(MAX_NANO_USD))
}
