import { METRICS, type MetricDescription, type MetricName, type NameOf } from './metric-list.ts'

/** Upper bounds in seconds: from a read of SQLite to the longest stream. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const
/** Sets of label values of one metric. Further ones count together under `other`. */
const MAX_SERIES = 1_000
const OTHER = 'other'
/** A gauge that is not read within this time is left out. Prometheus waits for 10 s. */
const READ_TIMEOUT_MS = 2_000

/** The value now, with its label values in the order of the list. */
export type Reading = readonly [value: number, ...labels: readonly string[]]
type ReadGauge = () => readonly Reading[] | Promise<readonly Reading[]>

/** What is read from a store is read at most this often, however many scrapers there are. */
const RARELY_MS = 10_000

/** Gives what `read` gave last, if that was a moment ago. */
export function readRarely(read: () => Promise<readonly Reading[]>): () => Promise<readonly Reading[]> {
  let last: Promise<readonly Reading[]> | undefined
  let readAt = Number.NEGATIVE_INFINITY
  return () => {
    if (last && performance.now() - readAt < RARELY_MS) return last
    readAt = performance.now()
    last = read()
    last.catch(() => {
      last = undefined
    })
    return last
  }
}

/** Where figures are told. Label values come in the order of `METRICS`. */
export interface Metrics {
  /** False: nobody reads them. */
  readonly isOn: boolean
  add(name: NameOf<'counter'>, by: number, ...labels: readonly string[]): void
  observe(name: NameOf<'histogram'>, seconds: number, ...labels: readonly string[]): void
  /** `read` is called at each scrape, until the result is disposed. */
  gauge(name: NameOf<'gauge' | 'counter'>, read: ReadGauge): Disposable
}

export const noMetrics: Metrics = {
  isOn: false,
  add: () => undefined,
  observe: () => undefined,
  gauge: () => ({ [Symbol.dispose]: () => undefined }),
}

interface Series {
  /** As it stands between the braces. */
  readonly labels: string
  sum: number
  /** Of a histogram: of each bucket alone, and of what is above the last. */
  readonly counts: number[] | undefined
}

/** Figures in memory, and their text in Prometheus' format 0.0.4. */
export class PrometheusMetrics implements Metrics {
  readonly isOn = true
  readonly #series = new Map<MetricName, Map<string, Series>>()
  readonly #gauges = new Map<MetricName, Set<ReadGauge>>()

  add(name: NameOf<'counter'>, by: number, ...labels: readonly string[]): void {
    this.#seriesOf(name, labels).sum += by
  }

  observe(name: NameOf<'histogram'>, seconds: number, ...labels: readonly string[]): void {
    const series = this.#seriesOf(name, labels)
    series.sum += seconds
    const counts = series.counts!
    let bucket = 0
    while (bucket < BUCKETS_SECONDS.length && seconds > BUCKETS_SECONDS[bucket]!) bucket++
    counts[bucket]! += 1
  }

  gauge(name: NameOf<'gauge' | 'counter'>, read: ReadGauge): Disposable {
    const reads = this.#gauges.get(name) ?? new Set()
    this.#gauges.set(name, reads.add(read))
    return { [Symbol.dispose]: () => void reads.delete(read) }
  }

  async text(): Promise<string> {
    const readings = await this.#readGauges()
    return (Object.keys(METRICS) as MetricName[])
      .flatMap((name) => {
        const { kind, help }: MetricDescription = METRICS[name]
        const lines = [...(this.#series.get(name)?.values() ?? [])].flatMap((series) => toLines(name, series))
        for (const [labels, value] of readings.get(name) ?? []) lines.push(line(name, labels, value))
        return lines.length > 0 ? [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, ...lines] : []
      })
      .map((each) => `${each}\n`)
      .join('')
  }

  async #readGauges(): Promise<ReadonlyMap<MetricName, ReadonlyMap<string, number>>> {
    const read = [...this.#gauges].flatMap(([name, reads]) =>
      [...reads].map(async (each) => ({ name, values: await inTime(each).catch(() => []) })),
    )
    const all = new Map<MetricName, Map<string, number>>()
    for (const { name, values } of await Promise.all(read)) {
      const ofName = all.get(name) ?? new Map<string, number>()
      all.set(name, ofName)
      // Parts of one process may each know a share.
      for (const [value, ...labels] of values.slice(0, MAX_SERIES)) {
        const key = labelText(name, labels)
        ofName.set(key, (ofName.get(key) ?? 0) + value)
      }
    }
    return all
  }

  #seriesOf(name: MetricName, labels: readonly string[]): Series {
    const all = this.#series.get(name) ?? new Map<string, Series>()
    if (all.size === 0) this.#series.set(name, all)
    const key = labels.length === 1 ? labels[0]! : labels.join('\0')
    const known = all.get(key)
    if (known) return known
    if (all.size >= MAX_SERIES && labels.some((label) => label !== OTHER))
      return this.#seriesOf(
        name,
        labels.map(() => OTHER),
      )
    const series: Series = {
      labels: labelText(name, labels),
      sum: 0,
      counts: METRICS[name].kind === 'histogram' ? new Array(BUCKETS_SECONDS.length + 1).fill(0) : undefined,
    }
    all.set(key, series)
    return series
  }
}

async function inTime(read: ReadGauge): Promise<readonly Reading[]> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('not read in time')), READ_TIMEOUT_MS)
  return Promise.race([Promise.try(read), promise]).finally(() => clearTimeout(timer))
}

function labelText(name: MetricName, values: readonly string[]): string {
  return METRICS[name].labels.map((label, index) => `${label}="${escapeLabel(values[index] ?? '')}"`).join(',')
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function toLines(name: string, { labels, sum, counts }: Series): readonly string[] {
  if (!counts) return [line(name, labels, sum)]
  let count = 0
  const buckets = counts.map((inBucket, index) => {
    count += inBucket
    return line(`${name}_bucket`, `${labels && `${labels},`}le="${BUCKETS_SECONDS[index] ?? '+Inf'}"`, count)
  })
  return [...buckets, line(`${name}_sum`, labels, sum), line(`${name}_count`, labels, count)]
}

function line(name: string, labels: string, value: number): string {
  return `${name}${labels && `{${labels}}`} ${value}`
}
