/** What the address says of the page, so that a link shows the same. */
export interface Filters {
  readonly range?: Range
  readonly by?: Grouping
  readonly measure?: Measure
  readonly model?: string
  readonly key?: string
  readonly tab?: 'records'
  /** Only the calls of one request. */
  readonly request?: string
  /** The record whose receipt is open. */
  readonly record?: string
}

export const RANGES = ['day', 'week', 'month', 'quarter'] as const
export const GROUPINGS = ['MODEL', 'KEY', 'OPERATION'] as const
export const MEASURES = ['amount', 'calls', 'inputTokens', 'outputTokens'] as const
export type Range = (typeof RANGES)[number]
export type Grouping = (typeof GROUPINGS)[number]
export type Measure = (typeof MEASURES)[number]

/** Hours of `day`, days of the others. */
export const STEPS = { day: 24, week: 7, month: 30, quarter: 90 } as const
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export function readFilters(search: Readonly<Record<string, unknown>>): Filters {
  const word = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
  const one = <Value extends string>(values: readonly Value[], value: unknown) => values.find((each) => each === value)
  return {
    range: one(RANGES, search.range),
    by: one(GROUPINGS, search.by),
    measure: one(MEASURES, search.measure),
    model: word(search.model),
    key: word(search.key),
    tab: search.tab === 'records' ? 'records' : undefined,
    request: word(search.request),
    record: word(search.record),
  }
}

/** The time that a range covers: whole hours of a day, or whole days, in UTC. */
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
