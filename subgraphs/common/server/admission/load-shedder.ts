import { performance } from 'node:perf_hooks'
import { LRUCache } from 'lru-cache'
import { KisError } from '../../errors.ts'
import { isToken, nameOfToken } from '../../identity/access-token.ts'
import { subscriberOf } from '../../sessions/client-address.ts'
import type { QueueWatch } from '../queue-watch.ts'

/** While requests are being refused, none is accepted if the oldest waiting work is older than this. */
const OLDEST_MS = 300
/**
 * While requests are being refused, some are accepted for this long in each turn of the event loop. The rest of the
 * turn is for accepted work and for refusals.
 */
const TURN_MS = 2
/** This long after the last refusal, everything is accepted again. */
const QUIET_MS = 1_000
/**
 * A key with fewer running requests than this is never refused: whoever asks for little does not wait for those who ask
 * for much.
 */
const FEW = 8
/**
 * What counts as one key, however it is sent, and the token of a session, once it was accepted. So does an access token.
 * All other requests count by their subscriber: whoever invents keys has no more room than with one.
 */
const KEY = /kis_(?:live_[0-9A-Za-z]{36}|session_[\w-]{43})(?=\s*$)/
const BEARER = /^bearer\s+/i
/** Accepted keys and tokens that are remembered, as many as the gateway remembers: 1 MB. */
const MAX_KNOWN = 10_000
/** The time needed to see that the load is over. */
const RETRY_MS = 2_000

/** The number of the current turn of the event loop. */
const turnOfLoop = () => performance.nodeTiming.uvMetricsInfo.loopCount

/**
 * Refuses requests, before any work for them, while the process is overloaded, and only those of keys with many running
 * requests. A burst is accepted, however large: requests are refused only when a queue lasts.
 */
export class LoadShedder {
  /** Made once, because the stack trace makes errors expensive. */
  readonly #refusal = new KisError('service_unavailable', 'The service has more to do than it can at the moment.', {
    retryAfterMs: RETRY_MS,
  })
  readonly #watch: Pick<QueueWatch, 'ageMs' | 'stands'>
  readonly #now: () => number
  readonly #turnNow: () => number
  /** Running requests by key. */
  readonly #underWay = new Map<string, number>()
  /** Names of accepted keys and tokens. */
  readonly #known = new LRUCache<string, true>({ max: MAX_KNOWN })
  #isCutting = false
  #refusedAtMs = 0
  #turn = -1
  #turnSinceMs = 0

  constructor(watch: Pick<QueueWatch, 'ageMs' | 'stands'>, now = () => performance.now(), turnNow = turnOfLoop) {
    this.#watch = watch
    this.#now = now
    this.#turnNow = turnNow
  }

  /**
   * Lets a request in. `key` may have `Bearer` before it. `address`: where it comes from. Gives the function to call at
   * its end.
   * @throws {KisError} `service_unavailable`: the process is overloaded
   */
  enter(key: string | null | undefined, address = ''): () => void {
    const name = this.#nameOf(key ?? '') ?? `from ${subscriberOf(address)}`
    const underWay = this.#underWay.get(name) ?? 0
    if (underWay >= FEW) this.#refuseIfFull()
    this.#underWay.set(name, underWay + 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      const left = this.#underWay.get(name)! - 1
      if (left > 0) this.#underWay.set(name, left)
      else this.#underWay.delete(name)
    }
  }

  /** Takes notice of a key or a token that was found to be valid. From then on it has a count of its own. */
  recognise(credentials: string): void {
    const name = nameOf(credentials)
    if (name !== null) this.#known.set(name, true)
  }

  /** Null: it has not been recognised. */
  #nameOf(credentials: string): string | null {
    const name = this.#known.size === 0 ? null : nameOf(credentials)
    return name !== null && this.#known.get(name) ? name : null
  }

  #refuseIfFull(): void {
    const nowMs = this.#now()
    if (this.#isCutting && nowMs - this.#refusedAtMs > QUIET_MS) this.#isCutting = false
    if (!this.#isCutting) {
      if (!this.#watch.stands()) return
      this.#isCutting = true
    }
    const turn = this.#turnNow()
    if (turn !== this.#turn) {
      this.#turn = turn
      this.#turnSinceMs = nowMs
    }
    if (nowMs - this.#turnSinceMs < TURN_MS && this.#watch.ageMs <= OLDEST_MS) return
    this.#refusedAtMs = nowMs
    throw this.#refusal
  }
}

/** Null: it is neither a key nor a token. */
function nameOf(credentials: string): string | null {
  const key = KEY.exec(credentials)?.[0]
  if (key !== undefined) return key
  const token = credentials.replace(BEARER, '').trimEnd()
  return isToken(token) ? nameOfToken(token) : null
}
