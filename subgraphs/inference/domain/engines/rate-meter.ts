/** The period of the limits. An idle key accumulates at most one period's limit. */
const WINDOW_MS = 60_000

/**
 * Measures the use of one limit per minute: a meter that drains evenly at the limit's rate and holds one minute of it
 * (an inverted token bucket: ITU-T I.371, "continuous-state leaky bucket"). So in any `t` minutes at most `limit * (1 +
 * t)` pass. The meter's unit is a 60,000th, of which `limit` drain in a millisecond. So all numbers are whole, and
 * waiting for exactly `waitMs` is always enough.
 * Each call passes the limit, because it may change. With a limit of 0, nothing passes, and `waitMs` is a minute. Times
 * are whole milliseconds of any one clock.
 */
export class RateMeter {
  #used: number
  #drainedAt: number

  /** @param used in 60,000ths, at the time `drainedAt` */
  constructor(used = 0, drainedAt = 0) {
    this.#used = used
    this.#drainedAt = drainedAt
  }

  /** The amount in use now, in 60,000ths. */
  usedAt(limit: number, now: number): number {
    this.#drain(limit, now)
    return this.#used
  }

  /**
   * Milliseconds until `amount` can be consumed; 0: now. An amount above the whole limit waits for an empty meter and
   * leaves a debt.
   */
  waitMs(amount: number, limit: number, now: number): number {
    this.#drain(limit, now)
    if (limit <= 0) return WINDOW_MS
    const over = this.#used + (amount - limit) * WINDOW_MS
    return Math.ceil(Math.max(0, Math.min(over, this.#used)) / limit)
  }

  /** Consumes the amount whether or not it fits. A negative amount is returned to the meter. */
  consume(amount: number, limit: number, now: number): void {
    this.#drain(limit, now)
    this.#used = Math.max(0, this.#used + amount * WINDOW_MS)
  }

  /** Whole units that can be consumed now. */
  remaining(limit: number, now: number): number {
    this.#drain(limit, now)
    return Math.max(0, Math.floor(limit - this.#used / WINDOW_MS))
  }

  /** Milliseconds until the whole limit is available again. */
  resetMs(limit: number, now: number): number {
    this.#drain(limit, now)
    return limit <= 0 ? WINDOW_MS : Math.ceil(this.#used / limit)
  }

  /** Drains the meter to `now`. If the clock was set back, nothing drains, and time continues from `now`. */
  #drain(limit: number, now: number): void {
    this.#used = Math.max(0, this.#used - Math.max(0, now - this.#drainedAt) * limit)
    this.#drainedAt = now
  }
}
