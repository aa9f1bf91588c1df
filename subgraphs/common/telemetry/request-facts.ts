/** Limit of fetches listed for one request. A page of 100 items needs a few. */
const MAX_FETCHES = 20
/** Limit of what another process of the service sends. */
const MAX_WIRE_CHARACTERS = 2_048

/** The header with which a process of this service reports to another what it knows of a request. */
export const FACTS_HEADER = 'x-kis-facts'

/** One call to another part of the service. */
interface Fetch {
  /** The part and its operation: `knowledge: SearchCollection`. */
  readonly name: string
  /** Milliseconds from the start of the request to the call. */
  readonly atMs: number
  /** Milliseconds until the response, or the first event of a subscription. */
  readonly tookMs: number
}

/** What is known of one request beside its HTTP: ids, names and figures, but no contents. */
export interface Facts {
  readonly organizationId?: string
  readonly apiKeyId?: string
  /** `query Collections`. */
  readonly operation?: string
  /** The code of the request's first error. */
  readonly error?: string
  readonly inputTokens: number
  readonly outputTokens: number
  /** The amount charged. */
  readonly costNanoUsd: bigint
  readonly fetches: readonly Fetch[]
  /** The number of all fetches, also of those that are not listed. */
  readonly fetchCount: number
  /** Another process of the service sent the request, and writes the line of the access log. */
  readonly isOfService: boolean
}

type ReportedFacts = Pick<Facts, 'organizationId' | 'apiKeyId' | 'operation' | 'error'>

interface Entry {
  /** Number of operations of the request that run at once. */
  holders: number
  readonly isOfService: boolean
  readonly startedMs: number
  reported: ReportedFacts
  inputTokens: number
  outputTokens: number
  costNanoUsd: bigint
  readonly fetches: Fetch[]
  fetchCount: number
  /** What has not been reported to the calling process. */
  unsent: { reported?: ReportedFacts; input: number; output: number; cost: bigint } | undefined
}

interface Wire extends ReportedFacts {
  readonly input?: number
  readonly output?: number
  readonly cost?: string
}

/**
 * The running requests of this process, by their id. Any code reports facts here; the code that ends a request takes
 * them. Facts about an unknown request are dropped.
 */
export class RequestFacts {
  readonly #entries = new Map<string, Entry>()
  readonly #isOn: boolean

  /** `isOn`: whether any code reads the facts. If not, nothing is stored. */
  constructor(isOn: boolean) {
    this.#isOn = isOn
  }

  /** Call `end` once for each call of `start`. `isOfService`: another process of the service sent the request. */
  start(requestId: string, isOfService = false): void {
    if (!this.#isOn || requestId === '') return
    const known = this.#entries.get(requestId)
    if (known) {
      known.holders += 1
      return
    }
    this.#entries.set(requestId, {
      holders: 1,
      isOfService,
      startedMs: performance.now(),
      reported: {},
      inputTokens: 0,
      outputTokens: 0,
      costNanoUsd: 0n,
      fetches: [],
      fetchCount: 0,
      unsent: undefined,
    })
  }

  /** Returns the facts. Undefined: the request is unknown. */
  end(requestId: string): Facts | undefined {
    const entry = this.#entries.get(requestId)
    if (!entry) return undefined
    entry.holders -= 1
    if (entry.holders <= 0) this.#entries.delete(requestId)
    const { reported, inputTokens, outputTokens, costNanoUsd, fetches, fetchCount, isOfService } = entry
    return { ...reported, inputTokens, outputTokens, costNanoUsd, fetches, fetchCount, isOfService }
  }

  /** Adds facts. The first report of a fact counts. */
  report(requestId: string, reported: ReportedFacts): void {
    const entry = this.#entries.get(requestId)
    if (!entry) return
    entry.reported = { ...reported, ...entry.reported }
    unsentOf(entry).reported = entry.reported
  }

  /** Adds tokens and their cost to what the request has consumed. */
  spent(requestId: string, { inputTokens, outputTokens, costNanoUsd }: Pick<Facts, 'inputTokens' | 'outputTokens' | 'costNanoUsd'>): void {
    const entry = this.#entries.get(requestId)
    if (!entry) return
    entry.inputTokens += inputTokens
    entry.outputTokens += outputTokens
    entry.costNanoUsd += costNanoUsd
    const unsent = unsentOf(entry)
    unsent.input += inputTokens
    unsent.output += outputTokens
    unsent.cost += costNanoUsd
  }

  /** Adds a fetch. `startedMs`: by `performance.now()`. */
  fetched(requestId: string, name: string, startedMs: number): void {
    const entry = this.#entries.get(requestId)
    if (!entry) return
    entry.fetchCount += 1
    if (entry.fetches.length >= MAX_FETCHES) return
    const atMs = Math.max(0, Math.round(startedMs - entry.startedMs))
    entry.fetches.push({ name, atMs, tookMs: Math.round(performance.now() - startedMs) })
  }

  /** Returns, as text, what the calling process does not know yet. Undefined: nothing. */
  drainUnsent(requestId: string): string | undefined {
    const entry = this.#entries.get(requestId)
    if (!entry?.unsent) return undefined
    const { reported, input, output, cost } = entry.unsent
    entry.unsent = undefined
    const wire: Wire = { ...reported, ...(input && { input }), ...(output && { output }), ...(cost && { cost: String(cost) }) }
    return JSON.stringify(wire)
  }

  /** Adds what another process of this service reported of the request. */
  merge(requestId: string, text: unknown): void {
    if (typeof text !== 'string' || text.length > MAX_WIRE_CHARACTERS || !this.#entries.has(requestId)) return
    const { input = 0, output = 0, cost = '0', ...reported } = JSON.parse(text) as Wire
    this.report(requestId, reported)
    if (input || output || cost !== '0') this.spent(requestId, { inputTokens: input, outputTokens: output, costNanoUsd: BigInt(cost) })
  }
}

function unsentOf(entry: Entry): NonNullable<Entry['unsent']> {
  entry.unsent ??= { input: 0, output: 0, cost: 0n }
  return entry.unsent
}
