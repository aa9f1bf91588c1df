import type { Clock } from '../../../common/process/clock.ts'

/** Most restarts in `WINDOW_MS` of a thread that keeps dying. After that, calls fail until the time has passed. */
const MAX_STARTS = 5
const WINDOW_MS = 60_000

/** Limits the restarts of a thread that dies again and again. */
export class StartLimit {
  readonly #clock: Clock
  readonly #starts: number[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts a start, and reports whether it is allowed. */
  count(): boolean {
    const now = this.#clock.now().getTime()
    while (this.#starts.length > 0 && this.#starts[0]! <= now - WINDOW_MS) this.#starts.shift()
    if (this.#starts.length >= MAX_STARTS) return false
    this.#starts.push(now)
    return true
  }
}
