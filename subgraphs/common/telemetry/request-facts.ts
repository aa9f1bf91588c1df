/** The most fetches that are told of one request. A page of a hundred items needs a few. */
const MAX_FETCHES = 20
/** What other processes of the service send is short. */
const MAX_WIRE_CHARACTERS = 2_048

/** The header with which a process of this service tells another what it knows of a request. */
export const FACTS_HEADER = 'x-kis-facts'

/** One call to another part of the service. */
interface Fetch {
  /** `knowledge: SearchCollection`. */
  readonly name: string
  /** After the begin of the request. */
  readonly atMs: number
  /** Until the answer, or the first event of a subscription. */
  readonly tookMs: number
}

/** What is known of one request beside its HTTP: ids, names and figures, nothing that it contains. */
export interface Facts {
  readonly organizationId?: string
  readonly apiKeyId?: string
  /** `query Collections`. */
  readonly operation?: string
  /** The code of its first error. */
  readonly error?: string
  readonly inputTokens: number
  readonly outputTokens: number
  /** What was charged. */
  readonly costNanoUsd: bigint
  readonly fetches: readonly Fetch[]
  /** Of all fetches, also those that are not listed. */
  readonly fetchCount: number
  /** Another process of the service asked, and writes the line of the access log. */
  readonly isOfService: boolean
}

type ReportedFacts = Pick<Facts, 'organizationId' | 'apiKeyId' | 'operation' | 'error'>

interface Entry {
  /** A request may be several operations at once. */
  holders: number
  readonly isOfService: boolean
  readonly startedMs: number
  reported: ReportedFacts
  inputTokens: number
  outputTokens: number
  costNanoUsd: bigint
  readonly fetches: Fetch[]
  fetchCount: number
  /** What the process that asked has not been told. */
  unsent: { reported?: ReportedFacts; input: number; output: number; cost: bigint } | undefined
}

interface Wire extends ReportedFacts {
  readonly input?: number
  readonly output?: number
  readonly cost?: string
}

/**
 * The requests under way in this process, by their id. Whoever finds something out tells it here; whoever ends a request
 * takes it. What is told of a request that nobody began is dropped.
 */
export class RequestFacts {
  readonly #entries = new Map<string, Entry>()
  readonly #isOn: boolean

  /** `isOn`: somebody wants to know. If not, nothing is kept. */
  constructor(isOn: boolean) {
    this.#isOn = isOn
  }

  /** Call `end` once for each call. `isOfService`: another process of the service asks. */
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

  /** Gives what is known. Undefined: nobody began it. */
  end(requestId: string): Facts | undefined {
    const entry = this.#entries.get(requestId)
    if (!entry) return undefined
    entry.holders -= 1
    if (entry.holders <= 0) this.#entries.delete(requestId)
    const { reported, inputTokens, outputTokens, costNanoUsd, fetches, fetchCount, isOfService } = entry
    return { ...reported, inputTokens, outputTokens, costNanoUsd, fetches, fetchCount, isOfService }
  }

  /** The first that tells something is right. */
  report(requestId: string, reported: ReportedFacts): void {
    const entry = this.#entries.get(requestId)
    if (!entry) return
    entry.reported = { ...reported, ...entry.reported }
    unsentOf(entry).reported = entry.reported
  }

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

  /** `startedMs`: by `performance.now()`. */
  fetched(requestId: string, name: string, startedMs: number): void {
    const entry = this.#entries.get(requestId)
    if (!entry) return
    entry.fetchCount += 1
    if (entry.fetches.length >= MAX_FETCHES) return
    const atMs = Math.max(0, Math.round(startedMs - entry.startedMs))
    entry.fetches.push({ name, atMs, tookMs: Math.round(performance.now() - startedMs) })
  }

  /** Gives, as text, what the process that asked does not know yet. Undefined: nothing. */
  drainUnsent(requestId: string): string | undefined {
    const entry = this.#entries.get(requestId)
    if (!entry?.unsent) return undefined
    const { reported, input, output, cost } = entry.unsent
    entry.unsent = undefined
    const wire: Wire = { ...reported, ...(input && { input }), ...(output && { output }), ...(cost && { cost: String(cost) }) }
    return JSON.stringify(wire)
  }

  /** Takes over what another process of this service told of the request. */
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
