/** One metric. `labels` are the names of its labels. */
export interface MetricDescription {
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
}

const counter = (help: string, ...labels: readonly string[]) => ({ kind: 'counter', help, labels }) as const
const gauge = (help: string, ...labels: readonly string[]) => ({ kind: 'gauge', help, labels }) as const
const histogram = (help: string, ...labels: readonly string[]) => ({ kind: 'histogram', help, labels }) as const

/**
 * Every metric. The last word of a name is the unit. No label has values that callers choose, except `organization`,
 * which operators must enable.
 */
export const METRICS = {
  kis_http_requests_total: counter('Requests that have ended.', 'route', 'method', 'status'),
  kis_http_request_seconds: histogram('Time of a request until its response, or its stream, has ended.', 'route'),
  kis_http_first_byte_seconds: histogram('Time of a request until its response begins. A stream begins with its first event.', 'route'),
  kis_http_requests: gauge('Requests in flight.'),
  kis_socket_operations_total: counter('Operations over sockets that have ended.', 'type', 'outcome'),
  kis_sockets: gauge('Open sockets whose key was accepted.', 'door'),
  kis_subscriptions: gauge('Running operations over sockets.', 'door'),
  kis_operation_seconds: histogram(
    'Time of an operation at a part of the service until its result, or the first event of a subscription.',
    'to',
    'type',
    'outcome',
  ),
  kis_cache_lookups_total: counter('Lookups of a cache.', 'cache', 'result'),
  kis_store_seconds: histogram('Time of an operation of a document store.', 'subgraph', 'operation', 'outcome'),
  kis_blob_store_seconds: histogram('Time of an operation of the blob store.', 'operation', 'outcome'),
  kis_index_seconds: histogram('Time of an operation of the chunk index.', 'operation', 'outcome'),
  kis_engine_seconds: histogram('Time of an engine call until its response, or its stream, has ended.', 'engine', 'operation', 'outcome'),
  kis_engine_first_token_seconds: histogram('Time of a streamed engine call until its first chunk.', 'engine', 'operation'),
  kis_engine_breaker_open: gauge('1 while the circuit breaker of an engine is open: it gets no calls, because its calls failed.', 'engine'),
  kis_tokens_total: counter('Tokens that were charged.', 'model', 'direction'),
  kis_charged_usd_total: counter('Money that was charged, in USD.', 'model'),
  kis_calls_charged_total: counter('Model calls that were charged.', 'model'),
  kis_zero_usage_calls_total: counter('Calls whose engine reported a usage of zero for work that was not empty.', 'model'),
  kis_wallet_holds: gauge('Open holds, of at most 200 wallets.'),
  kis_wallet_held_usd: gauge('Money that these holds set aside, in USD.'),
  kis_outbox_wallets: gauge('Wallets with entries that wait to be copied to the ledger, of those that this process wrote.'),
  kis_outbox_lag_seconds: gauge('How long the oldest of these entries has waited.'),
  kis_jobs: gauge('Jobs by kind. `due`: a worker may start it; `begun`: running or postponed. Up to 1,000 are counted.', 'of', 'state'),
  kis_job_oldest_seconds: gauge('How long the oldest due job has waited past its due time.', 'of'),
  kis_task_seconds: histogram('Time of a round of background work.', 'task', 'outcome'),
  kis_task_late_seconds: gauge('How long a task is overdue without success.', 'task'),
  kis_organization_requests_total: counter('Requests that have ended, by organization.', 'organization'),
  kis_organization_tokens_total: counter('Tokens that were charged, by organization.', 'organization'),
  kis_organization_charged_usd_total: counter('Money that was charged, in USD, by organization.', 'organization'),
  kis_event_loop_delay_seconds: gauge('Event-loop delay since the last scrape.', 'percentile'),
  kis_build_info: gauge('1. The labels are the version and the role.', 'version', 'role'),
  process_resident_memory_bytes: gauge('Memory of the process.'),
  process_cpu_seconds_total: counter('Processor time of the process.'),
  process_start_time_seconds: gauge('When the process started, in seconds since 1970.'),
  nodejs_heap_size_used_bytes: gauge('Heap memory of JavaScript objects.'),
  nodejs_external_memory_bytes: gauge('Memory of buffers and of native objects.'),
} as const satisfies Readonly<Record<string, MetricDescription>>

export type MetricName = keyof typeof METRICS
export type NameOf<Kind extends MetricDescription['kind']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['kind'] extends Kind ? Name : never
}[MetricName]

/** Upper limits in seconds: from a read of SQLite to the longest stream. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const
/** Sets of label values of one metric. Further sets count together under `other`. */
const MAX_SERIES = 1_000
const OTHER = 'other'
/** A gauge that takes longer to read is left out. Prometheus waits for 10 s. */
const READ_TIMEOUT_MS = 2_000

/** The current value, with its label values in the order of the list. */
export type Reading = readonly [value: number, ...labels: readonly string[]]
type ReadGauge = () => readonly Reading[] | Promise<readonly Reading[]>

/** Values from a store are read at most once in this interval, however many scrapers there are. */
const RARELY_MS = 10_000

/** Caches the result of `read` for 10 s. */
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

/** Receives figures. Label values come in the order of `METRICS`. */
export interface Metrics {
  /** False: no figures are collected. */
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
  /** The labels as in the text between the braces. */
  readonly labels: string
  sum: number
  /** Counts of a histogram: one for each bucket alone, and one for values above the last bucket. */
  readonly counts: number[] | undefined
}

/** Stores figures in memory, and writes them in Prometheus' text format 0.0.4. */
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
      // Parts of one process may each read some of the values.
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
