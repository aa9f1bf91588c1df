import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'

/** How old the addresses of a name may get while it is used: a new replica has work within this. */
const RESOLVE_MS = 2_000
/** A replica that could not be reached is left alone for this long while there are others. */
const DOWN_MS = 1_000
/** Turns at one replica for one call: while it tried the others, the first may have come back. */
const MAX_TURNS = 2
/** Replicas of one service that are told apart; what a name has beyond them is not used. */
const MAX_ENDPOINTS = 100

/** One replica of a service. */
export interface Endpoint {
  /** `http://10.0.0.7:4001` */
  readonly origin: string
  /** What it is asked for as: the name and port of the address that was configured. */
  readonly host: string
}

/** What a replica is spoken to by. */
export interface Connection extends AsyncDisposable {
  /** The replica is no longer named: what is under way goes on, and nothing new comes. */
  retire(): void
}

interface Entry<T> {
  readonly endpoint: Endpoint
  readonly connection: T
  underWay: number
  /** In milliseconds of `performance.now()`. */
  downUntil: number
}

/** A turn of work at one replica. */
export interface Turn<T> {
  readonly connection: T
  /** It could not be reached. */
  fail(): void
  /** The work is over; once. */
  end(): void
}

/**
 * The replicas behind a service's addresses, and which of them is asked next: the one with the least under way. An address that names a host
 * stands for every address of that name (as replicas have in Compose and behind a headless service of Kubernetes), but for `https`, whose
 * certificate is the name's.
 */
export class Endpoints<T extends Connection> implements AsyncDisposable {
  readonly #addresses: readonly URL[]
  readonly #connect: (endpoint: Endpoint) => T
  #entries: readonly Entry<T>[] = []
  #resolving: Promise<void> | undefined
  #resolvedAt = Number.NEGATIVE_INFINITY
  #next = 0

  /** @param addresses 1 or more, like `http://knowledge:4002`. @param connect makes what a replica is spoken to by. */
  constructor(addresses: readonly string[], connect: (endpoint: Endpoint) => T) {
    this.#addresses = addresses.map((address) => new URL(address))
    this.#connect = connect
  }

  /** Turns at each replica in order, the best first; those that could not be reached lately come last. None when no name has an address. */
  async *turns(): AsyncGenerator<Turn<T>, void> {
    const tried = new Set<Entry<T>>()
    for (let turn = 1; turn <= MAX_TURNS; ) {
      await this.#resolve()
      const entry = this.#best(tried)
      if (!entry) {
        turn++
        tried.clear()
        continue
      }
      tried.add(entry)
      entry.underWay++
      yield {
        connection: entry.connection,
        fail: () => {
          entry.downUntil = performance.now() + DOWN_MS
        },
        end: () => {
          entry.underWay--
        },
      }
    }
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
      if (!best || (bestIsDown && !isDown) || (bestIsDown === isDown && entry.underWay < best.underWay)) best = entry
    }
    return best
  }

  /** Waits only while no replica is known. */
  async #resolve(): Promise<void> {
    if (performance.now() - this.#resolvedAt > RESOLVE_MS) {
      this.#resolving ??= this.#lookUp().finally(() => {
        this.#resolving = undefined
      })
    }
    if (this.#entries.length === 0) await this.#resolving
  }

  async #lookUp(): Promise<void> {
    const found = (await Promise.all(this.#addresses.map(endpointsOf))).flat().slice(0, MAX_ENDPOINTS)
    // A name server that does not answer says nothing about the replicas.
    if (found.length === 0) return
    this.#resolvedAt = performance.now()
    const known = new Map(this.#entries.map((entry) => [entry.endpoint.origin, entry]))
    const entries = new Map<string, Entry<T>>()
    for (const endpoint of found) {
      const entry = known.get(endpoint.origin) ?? entries.get(endpoint.origin)
      entries.set(endpoint.origin, entry ?? { endpoint, connection: this.#connect(endpoint), underWay: 0, downUntil: 0 })
    }
    this.#entries = [...entries.values()]
    for (const [origin, { connection }] of known) if (!entries.has(origin)) connection.retire()
  }
}

/** None when the name cannot be resolved at the moment. */
async function endpointsOf({ protocol, hostname, port, host, origin }: URL): Promise<readonly Endpoint[]> {
  if (protocol === 'https:' || isIP(hostname.replace(/^\[|\]$/g, ''))) return [{ origin, host }]
  const addresses = await lookup(hostname, { all: true }).catch(() => [])
  return addresses.map(({ address, family }) => ({
    origin: `${protocol}//${family === 6 ? `[${address}]` : address}${port && `:${port}`}`,
    host,
  }))
}
