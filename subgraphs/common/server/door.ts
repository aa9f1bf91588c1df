import { performance } from 'node:perf_hooks'
import { KisError } from '../errors.ts'
import type { QueueWatch } from './queue-watch.ts'

/** While requests are being refused, none is taken on if the oldest waiting work is older than this. */
const OLDEST_MS = 300
/** While a queue is cut, requests are taken on for this long in each turn of the event loop. The rest of the turn is for what was taken on before, and for refusals. */
const TURN_MS = 2
/** So long after the last refusal everything is taken on again. */
const QUIET_MS = 1_000
/** Requests under way of one key that are taken on all the same: whoever asks for little does not wait for those who ask for much. */
const FEW = 8
/** What counts as one key, however it is sent; whatever is no key counts as one together. */
const KEY = /kis_live_[0-9A-Za-z]{36}(?=\s*$)/
/** As long as it takes to see that the load is over. */
const RETRY_MS = 2_000

/** The turn of the event loop that is under way, by number. */
const turnOfLoop = () => performance.nodeTiming.uvMetricsInfo.loopCount

/**
 * Refuses requests at once, before anything is done for them, while the process has more to do than it can, and only those of keys that have
 * many under way. A burst is taken on whole, however large: only a queue that stands is cut.
 */
export class Door {
  /** Made once: what makes an error dear is the trace of its stack. */
  readonly #refusal = new KisError('service_unavailable', 'The service has more to do than it can at the moment.', {
    retryAfterMs: RETRY_MS,
  })
  readonly #watch: Pick<QueueWatch, 'ageMs' | 'stands'>
  readonly #now: () => number
  readonly #turnNow: () => number
  /** Requests under way, by key. */
  readonly #underWay = new Map<string, number>()
  #isCutting = false
  #refusedAtMs = 0
  #turn = -1
  #turnSinceMs = 0

  constructor(watch: Pick<QueueWatch, 'ageMs' | 'stands'>, now = () => performance.now(), turnNow = turnOfLoop) {
    this.#watch = watch
    this.#now = now
    this.#turnNow = turnNow
  }

  /** A request comes in, with this key if any, with or without `Bearer`; gives what tells its end. @throws {KisError} `service_unavailable`: it is not taken on. */
  enter(key: string | null | undefined): () => void {
    const name = KEY.exec(key ?? '')?.[0] ?? ''
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
