import { readOne, readText } from '../../data/search-params.ts'

/** The state of the page in its address, so that a link shows the same. */
export interface Filters {
  readonly range?: Range
  readonly by?: Grouping
  readonly measure?: Measure
  readonly model?: string
  readonly key?: string
  readonly tab?: 'records'
  /** Shows only the calls of one request. */
  readonly request?: string
  /** The record whose receipt is open. */
  readonly record?: string
}

export const RANGES = ['day', 'week', 'month', 'quarter'] as const
export const GROUPINGS = ['MODEL', 'KEY', 'OPERATION'] as const
export const MEASURES = ['amount', 'calls', 'inputTokens', 'outputTokens'] as const
type Range = (typeof RANGES)[number]
export type Grouping = (typeof GROUPINGS)[number]
export type Measure = (typeof MEASURES)[number]

/** Steps of each range: hours of `day`, days of the others. */
export const STEPS = { day: 24, week: 7, month: 30, quarter: 90 } as const
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export function readFilters(search: Readonly<Record<string, unknown>>): Filters {
  return {
    range: readOne(RANGES, search.range),
    by: readOne(GROUPINGS, search.by),
    measure: readOne(MEASURES, search.measure),
    model: readText(search.model),
    key: readText(search.key),
    tab: search.tab === 'records' ? 'records' : undefined,
    request: readText(search.request),
    record: readText(search.record),
  }
}

/** Returns the time that a range covers: whole hours of a day, or whole days, in UTC. */
export function timesOf(
  range: Range,
  now = Date.now(),
): { readonly since: string; readonly until: string; readonly steps: readonly string[] } {
  const step = range === 'day' ? HOUR_MS : DAY_MS
  const count = STEPS[range]
  const until = Math.floor(now / step) * step + step
  const since = until - count * step
  const iso = (time: number) => new Date(time).toISOString()
  return { since: iso(since), until: iso(until), steps: Array.from({ length: count }, (_, index) => iso(since + index * step)) }
}
