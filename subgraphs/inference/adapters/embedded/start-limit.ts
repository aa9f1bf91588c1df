import type { Clock } from '../../../common/process/clock.ts'

/**
 * A thread that keeps dying is restarted at most this often in `WINDOW_MS`. After that, calls fail until the time has
 * passed.
 */
const MAX_STARTS = 5
const WINDOW_MS = 60_000

/** Counts the starts of one thread. */
export class StartLimit {
  readonly #clock: Clock
  readonly #starts: number[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts a start, and reports whether it may be made. */
  count(): boolean {
    const now = this.#clock.now().getTime()
    while (this.#starts.length > 0 && this.#starts[0]! <= now - WINDOW_MS) this.#starts.shift()
    if (this.#starts.length >= MAX_STARTS) return false
    this.#starts.push(now)
    return true
  }
}
