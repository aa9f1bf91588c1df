/** So many failures in a row mean that the engine is down, not that one call had bad luck. */
const FAILURES_TO_OPEN = 5
/** How long a failing engine is left alone; then one call tries it. */
const OPEN_MS = 10_000

/** Keeps calls away from an engine that only fails, so that fallbacks answer at once. Times are milliseconds of any one clock. */
export class Breaker {
  #failures = 0
  #closedAt = 0

  /** Milliseconds until the engine may be tried again; 0 when it may be now. The first to ask after that time is the one that tries. */
  waitMs(now: number): number {
    if (this.#failures < FAILURES_TO_OPEN) return 0
    if (now < this.#closedAt) return this.#closedAt - now
    this.#closedAt = now + OPEN_MS
    return 0
  }

  succeeded(): void {
    this.#failures = 0
  }

  /** True when the engine is left alone from now on. */
  failed(now: number): boolean {
    this.#failures += 1
    this.#closedAt = now + OPEN_MS
    return this.#failures >= FAILURES_TO_OPEN
  }
}
