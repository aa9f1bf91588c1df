/** The period of the limits. A quiet key saves up at most as much. */
const WINDOW_MS = 60_000

/**
 * Measures use of one limit per minute: a meter that drains evenly at the limit's rate and holds one minute of it (a
 * token bucket turned over: ITU-T I.371, "continuous-state leaky bucket"). So in any `t` minutes at most `limit * (1 +
 * t)` pass. Its unit is a 60,000th, of which `limit` drain in a millisecond. So all numbers are whole, and waiting
 * exactly as long as it says is always enough.
 *
 * Each call passes the limit, because it may change. Of a limit of 0, nothing passes; ask again in a minute. Times are
 * whole milliseconds of any one clock.
 */
export class RateMeter {
  #used: number
  #drainedAt: number

  /** @param used in 60,000ths, at the time `drainedAt` */
  constructor(used = 0, drainedAt = 0) {
    this.#used = used
    this.#drainedAt = drainedAt
  }

  /** What is taken now, in 60,000ths. */
  usedAt(limit: number, now: number): number {
    this.#drain(limit, now)
    return this.#used
  }

  /**
   * Milliseconds until `amount` may be taken; 0: now. More than the whole limit waits for an empty meter, and leaves a
   * debt.
   */
  waitMs(amount: number, limit: number, now: number): number {
    this.#drain(limit, now)
    if (limit <= 0) return WINDOW_MS
    const over = this.#used + (amount - limit) * WINDOW_MS
    return Math.ceil(Math.max(0, Math.min(over, this.#used)) / limit)
  }

  /** Takes the amount whether or not it fits. A negative amount is given back. */
  consume(amount: number, limit: number, now: number): void {
    this.#drain(limit, now)
    this.#used = Math.max(0, this.#used + amount * WINDOW_MS)
  }

  /** Whole units that may be taken now. */
  remaining(limit: number, now: number): number {
    this.#drain(limit, now)
    return Math.max(0, Math.floor(limit - this.#used / WINDOW_MS))
  }

  /** Milliseconds until the whole limit is available again. */
  resetMs(limit: number, now: number): number {
    this.#drain(limit, now)
    return limit <= 0 ? WINDOW_MS : Math.ceil(this.#used / limit)
  }

  /** When the clock was set back, nothing drains, and time goes on from there. */
  #drain(limit: number, now: number): void {
    this.#used = Math.max(0, this.#used - Math.max(0, now - this.#drainedAt) * limit)
    this.#drainedAt = now
  }
}
