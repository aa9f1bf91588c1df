import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'

/** How old the resolved addresses of a name may be. A new replica gets work within this time. */
const RESOLVE_MS = 2_000
/** How long an unreachable replica is skipped while there are others. */
const DOWN_MS = 1_000
/** Attempts at one replica for one call. While the others were tried, the first may have come back. */
const MAX_ATTEMPTS = 2
/** Most replicas of one service. Further addresses of a name are not used. */
const MAX_ENDPOINTS = 100

/** One replica of a service. */
export interface Endpoint {
  /** The replica's address, such as `http://10.0.0.7:4001`. */
  readonly origin: string
  /** Name and port of the configured address, for the `host` header. */
  readonly host: string
}

interface Connection extends AsyncDisposable {
  /** The replica is no longer listed: running operations continue, and no new ones come. */
  retire(): void
}

interface Entry<T> {
  readonly endpoint: Endpoint
  readonly connection: T
  inFlight: number
  /** Skipped until then, in milliseconds of `performance.now()`. */
  downUntil: number
}

/** A call at one replica, counted among those in flight there until `end`. */
export interface ReplicaAttempt<T> {
  readonly connection: T
  /** Reports that the replica could not be reached. */
  fail(): void
  /** Reports that the work is over. Call it once. */
  end(): void
}

/**
 * The replicas behind a service's addresses. The one with the least work gets the next call. A host name stands for all
 * its addresses (as replicas have in Compose and behind a headless service of Kubernetes), except with `https`, because
 * the certificate is for the name.
 */
export class Endpoints<T extends Connection> implements AsyncDisposable {
  readonly #addresses: readonly URL[]
  readonly #connect: (endpoint: Endpoint) => T
  #entries: readonly Entry<T>[] = []
  #resolving: Promise<void> | undefined
  #resolvedAt = Number.NEGATIVE_INFINITY
  #next = 0

  /**
   * @param addresses one or more, such as `http://knowledge:4002`
   * @param connect creates the connection to a replica
   */
  constructor(addresses: readonly string[], connect: (endpoint: Endpoint) => T) {
    this.#addresses = addresses.map((address) => new URL(address))
    this.#connect = connect
  }

  /**
   * Yields attempts at the replicas in order, the best first, recently unreachable ones last. None when no name
   * resolves.
   */
  async *attempts(): AsyncGenerator<ReplicaAttempt<T>, void> {
    const tried = new Set<Entry<T>>()
    for (let round = 1; round <= MAX_ATTEMPTS; ) {
      await this.#resolve()
      const entry = this.#best(tried)
      if (!entry) {
        round++
        tried.clear()
        continue
      }
      tried.add(entry)
      entry.inFlight++
      yield {
        connection: entry.connection,
        fail: () => {
          entry.downUntil = performance.now() + DOWN_MS
        },
        end: () => {
          entry.inFlight--
        },
      }
    }
  }

  /** Returns the connections to all replicas. */
  async all(): Promise<readonly T[]> {
    await this.#resolve()
    return this.#entries.map(({ connection }) => connection)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resolving
    await Promise.all(this.#entries.map(({ connection }) => connection[Symbol.asyncDispose]()))
  }

  #best(tried: ReadonlySet<Entry<T>>): Entry<T> | undefined {
    const now = performance.now()
    const start = this.#next++
    let best: Entry<T> | undefined
    for (let i = 0; i < this.#entries.length; i++) {
      const entry = this.#entries[(start + i) % this.#entries.length]!
      if (tried.has(entry)) continue
      const isDown = entry.downUntil > now
      const bestIsDown = best !== undefined && best.downUntil > now
      if (!best || (bestIsDown && !isDown) || (bestIsDown === isDown && entry.inFlight < best.inFlight)) best = entry
    }
    return best
  }

  /** Resolves the names. Waits only while no replica is known. */
  async #resolve(): Promise<void> {
    if (performance.now() - this.#resolvedAt > RESOLVE_MS) {
      this.#resolving ??= this.#lookUp().finally(() => {
        this.#resolving = undefined
      })
    }
    if (this.#entries.length === 0) await this.#resolving
  }

  async #lookUp(): Promise<void> {
    const found = (await Promise.all(this.#addresses.map(resolveEndpoints))).flat().slice(0, MAX_ENDPOINTS)
    // A name server that does not respond says nothing about the replicas.
    if (found.length === 0) return
    this.#resolvedAt = performance.now()
    const known = new Map(this.#entries.map((entry) => [entry.endpoint.origin, entry]))
    const entries = new Map<string, Entry<T>>()
    for (const endpoint of found) {
      const entry = known.get(endpoint.origin) ?? entries.get(endpoint.origin)
      entries.set(endpoint.origin, entry ?? { endpoint, connection: this.#connect(endpoint), inFlight: 0, downUntil: 0 })
    }
    this.#entries = [...entries.values()]
    for (const [origin, { connection }] of known) if (!entries.has(origin)) connection.retire()
  }
}

/** Returns an empty list when the name cannot be resolved now. */
async function resolveEndpoints({ protocol, hostname, port, host, origin }: URL): Promise<readonly Endpoint[]> {
  if (protocol === 'https:' || isIP(hostname.replace(/^\[|\]$/g, ''))) return [{ origin, host }]
  const addresses = await lookup(hostname, { all: true }).catch(() => [])
  return addresses.map(({ address, family }) => ({
    origin: `${protocol}//${family === 6 ? `[${address}]` : address}${port && `:${port}`}`,
    host,
  }))
}
