import { LRUCache } from 'lru-cache'
import { KisError } from '../../errors.ts'
import { isToken, nameOfToken } from '../../identity/credentials.ts'
import { subscriberOf } from '../../sessions/client-address.ts'
import type { QueueWatch } from '../queue-watch.ts'

/** While requests are being refused, none is accepted if the oldest waiting work is older than this. */
const OLDEST_MS = 300
/** While requests are being refused, this many wait to be started: enough to keep the process busy for some 40 ms. */
const MAX_WAITING = 32
/**
 * Requests that start in one event-loop tick, some 10 ms of work. If thousands started at once, all of them would run
 * each of their steps in the same tick, and every later request would wait for seconds.
 */
const STARTS_PER_TICK = 8
/** Time after the last refusal when everything is accepted again. */
const QUIET_MS = 1_000
/** A key with fewer running requests than this is never refused, so that light users do not wait for heavy users. */
const FEW = 8
/**
 * A key, however it is sent, or a session token. Each counts separately once it was accepted, as does an access token.
 * All other requests count by their subscriber, so invented keys add no capacity.
 */
const KEY = /kis_(?:live_[0-9A-Za-z]{36}|session_[\w-]{43})(?=\s*$)/
const BEARER = /^bearer\s+/i
/** Accepted keys and tokens that are cached, as many as the gateway caches: 1 MB. */
const MAX_KNOWN = 10_000
/** The time needed to see that the load is over. */
const RETRY_MS = 2_000

/**
 * Starts requests a few in each event-loop tick, in the order of their arrival. While the process is overloaded,
 * refuses requests before any work for them. Requests of keys with few running ones are neither queued nor refused. A
 * burst is accepted, however large: requests are refused only when a queue lasts.
 */
export class LoadShedder {
  /** Created once, because the stack trace makes errors expensive. */
  readonly #refusal = new KisError('service_unavailable', 'The service is overloaded.', {
    retryAfterMs: RETRY_MS,
  })
  readonly #watch: Pick<QueueWatch, 'ageMs' | 'stands'>
  readonly #now: () => number
  /** Running requests by key. */
  readonly #inFlight = new Map<string, number>()
  /** Names of accepted keys and tokens. */
  readonly #known = new LRUCache<string, true>({ max: MAX_KNOWN })
  /** Requests that wait to be started, oldest first. */
  readonly #waiting = new Set<{ readonly sinceMs: number; readonly start: () => void }>()
  #startsLeft = STARTS_PER_TICK
  #nextTick: NodeJS.Immediate | null = null
  #isCutting = false
  #refusedAtMs = 0

  constructor(watch: Pick<QueueWatch, 'ageMs' | 'stands'>, now = () => performance.now()) {
    this.#watch = watch
    this.#now = now
  }

  /**
   * Admits a request. `key` may have `Bearer` before it. `address`: the client's address. Calls `start` at once or in a
   * later event-loop tick. Returns the function to call when the request ends, which may be before its start.
   * @throws {KisError} `service_unavailable`: the process is overloaded
   */
  enter(key: string | null | undefined, address: string, start: () => void): () => void {
    const name = this.#nameOf(key ?? '') ?? `from ${subscriberOf(address)}`
    const inFlight = this.#inFlight.get(name) ?? 0
    if (inFlight >= FEW) this.#refuseIfFull()
    this.#inFlight.set(name, inFlight + 1)
    const dequeue = inFlight < FEW ? void start() : this.#startOrQueue(start)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      dequeue?.()
      const left = this.#inFlight.get(name)! - 1
      if (left > 0) this.#inFlight.set(name, left)
      else this.#inFlight.delete(name)
    }
  }

  /** Records a key or a token that was found to be valid. From then on its requests count separately. */
  recognise(credentials: string): void {
    const name = nameOf(credentials)
    if (name !== null) this.#known.set(name, true)
  }

  /** Null: the key or token has not been recorded. */
  #nameOf(credentials: string): string | null {
    const name = this.#known.size === 0 ? null : nameOf(credentials)
    return name !== null && this.#known.get(name) ? name : null
  }

  #refuseIfFull(): void {
    const nowMs = this.#now()
    const [oldest] = this.#waiting
    const ageMs = Math.max(this.#watch.ageMs, oldest ? nowMs - oldest.sinceMs : 0)
    if (this.#isCutting && nowMs - this.#refusedAtMs > QUIET_MS) this.#isCutting = false
    if (!this.#isCutting) {
      if (!this.#watch.stands(ageMs)) return
      this.#isCutting = true
    }
    if (this.#waiting.size < MAX_WAITING && ageMs <= OLDEST_MS) return
    this.#refusedAtMs = nowMs
    throw this.#refusal
  }

  /** Returns the function that removes the request from the queue, if it waits. */
  #startOrQueue(start: () => void): (() => void) | undefined {
    this.#nextTick ??= setImmediate(() => this.#startNext())
    if (this.#startsLeft > 0 && this.#waiting.size === 0) {
      this.#startsLeft--
      start()
      return
    }
    const waiting = { sinceMs: this.#now(), start }
    this.#waiting.add(waiting)
    return () => void this.#waiting.delete(waiting)
  }

  #startNext(): void {
    this.#nextTick = null
    this.#startsLeft = STARTS_PER_TICK
    for (const waiting of this.#waiting) {
      if (this.#startsLeft === 0) break
      this.#startsLeft--
      this.#waiting.delete(waiting)
      waiting.start()
    }
    if (this.#waiting.size > 0) this.#nextTick ??= setImmediate(() => this.#startNext())
  }
}

/** Null: the text is neither a key nor a token. */
function nameOf(credentials: string): string | null {
  const key = KEY.exec(credentials)?.[0]
  if (key !== undefined) return key
  const token = credentials.replace(BEARER, '').trimEnd()
  return isToken(token) ? nameOfToken(token) : null
}
