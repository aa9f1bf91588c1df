import type { Grouping, Measure } from './filters.ts'
import type { Summary, Totals } from './usage.ts'

/** More series than this cannot be distinguished by their color; the smallest are merged. */
const MAX_SERIES = 6
export const REST = 'rest'

type Group = Summary['groups'][number]

/** One line of the chart: the usage of one model, key or kind of call. */
export interface Series {
  /** The id of a model or key, a kind of call, or `rest`. */
  readonly id: string
  /** The name of a key, if it has one. */
  readonly name: string | null
  readonly total: number
  readonly color: string
}

/** A step of time, with the value of each series by its id. */
export interface Point {
  readonly at: string
  readonly values: Readonly<Record<string, number>>
}

/** Returns the value for a bar: a float is exact enough for its height. */
export function measured(totals: Totals, measure: Measure): number {
  if (measure === 'amount') return Number(totals.amount)
  if (measure === 'inputTokens') return totals.inputTokens + totals.cachedInputTokens + totals.cacheWriteTokens
  return totals[measure]
}

function idOf(group: Group, by: Grouping): string {
  return (by === 'MODEL' ? group.modelId : by === 'KEY' ? group.apiKeyId : group.operation) ?? REST
}

/** Returns the groups of a summary as series over its steps, the largest first, with zero for empty steps. */
export function toSeries(
  groups: readonly Group[],
  steps: readonly string[],
  by: Grouping,
  measure: Measure,
): { readonly series: readonly Series[]; readonly points: readonly Point[] } {
  const totals = new Map<string, { name: string | null; total: number }>()
  for (const group of groups) {
    const id = idOf(group, by)
    const known = totals.get(id)
    totals.set(id, { name: known?.name ?? group.apiKey?.name ?? null, total: (known?.total ?? 0) + measured(group.totals, measure) })
  }
  const ranked = [...totals].filter(([, { total }]) => total > 0).sort(([, a], [, b]) => b.total - a.total)
  const shown = ranked.length > MAX_SERIES ? ranked.slice(0, MAX_SERIES - 1) : ranked
  const series: Series[] = shown.map(([id, { name, total }], index) => ({ id, name, total, color: `var(--series-${index + 1})` }))
  if (shown.length < ranked.length) {
    const total = ranked.slice(shown.length).reduce((sum, [, { total }]) => sum + total, 0)
    series.push({ id: REST, name: null, total, color: 'var(--series-rest)' })
  }
  const ids = new Set(shown.map(([id]) => id))
  const points = steps.map((at) => ({ at, values: Object.fromEntries(series.map(({ id }) => [id, 0])) as Record<string, number> }))
  const byTime = new Map(points.map((point) => [Date.parse(point.at), point]))
  for (const group of groups) {
    const values = byTime.get(Date.parse(group.hour ?? group.day ?? ''))?.values
    const id = ids.has(idOf(group, by)) ? idOf(group, by) : REST
    if (values && id in values) values[id]! += measured(group.totals, measure)
  }
  return { series, points }
}

/** Distances between two numbers of the axis: 1, 2 or 5 times a power of ten. */
const STEPS = [1, 2, 5, 10]
const MOST_STEPS = 5

/** Returns the numbers of the axis: round, evenly spaced, from zero to the highest bar or a little above. */
export function ticksOf(points: readonly Point[]): number[] {
  const highest = Math.max(...points.map(({ values }) => Object.values(values).reduce((sum, value) => sum + value, 0)))
  if (highest <= 0) return [0, 1]
  const power = Math.floor(Math.log10(highest / MOST_STEPS))
  // Negative powers divide, so that 0.3 is not 0.30000000000000004.
  const times = (count: number, each: number) => (power < 0 ? (count * each) / 10 ** -power : count * each * 10 ** power)
  const each = STEPS.find((each) => times(MOST_STEPS, each) >= highest) ?? 10
  const count = Math.ceil(highest / times(1, each))
  return Array.from({ length: count + 1 }, (_, index) => times(index, each))
}
