/** As many failures in a row mean that the engine is down, not that one call was unlucky. */
const FAILURES_TO_OPEN = 5
/** How long a failing engine gets no calls. Then one call tests it. */
const OPEN_MS = 10_000

/**
 * A circuit breaker: stops calls to an engine that only fails, so that fallbacks run at once. Times are milliseconds of
 * any one clock.
 */
export class Breaker {
  #failures = 0
  #closedAt = 0

  /** Milliseconds until the engine may be tried again; 0: now. The first caller after that time makes the test call. */
  waitMs(now: number): number {
    if (this.#failures < FAILURES_TO_OPEN) return 0
    if (now < this.#closedAt) return this.#closedAt - now
    this.#closedAt = now + OPEN_MS
    return 0
  }

  /** True while the engine gets no calls. */
  isOpen(now: number): boolean {
    return this.#failures >= FAILURES_TO_OPEN && now < this.#closedAt
  }

  succeeded(): void {
    this.#failures = 0
  }

  /** Records a failure. Returns true if the engine gets no more calls from now on. */
  failed(now: number): boolean {
    this.#failures += 1
    this.#closedAt = now + OPEN_MS
    return this.#failures >= FAILURES_TO_OPEN
  }
}
