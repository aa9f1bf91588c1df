/**
 * One in this many calls of an engine may be retried. An engine that fails all its calls then gets 10% more calls, not
 * twice as many (Google SRE book, "Handling Overload").
 */
const CALLS_PER_REPEAT = 10
/**
 * Most retries that accumulate, and the initial number for a new engine: enough for a few unlucky calls, too few to
 * prevent a failing engine from recovering.
 */
const MAX_RETRIES = 10

/** Limits how often calls of one engine are retried. */
export class RetryBudget {
  /** Calls that no retry has consumed. */
  #calls = MAX_RETRIES * CALLS_PER_REPEAT

  called(): void {
    this.#calls = Math.min(this.#calls + 1, MAX_RETRIES * CALLS_PER_REPEAT)
  }

  /** Consumes one retry. False: none is left. */
  tryConsume(): boolean {
    if (this.#calls < CALLS_PER_REPEAT) return false
    this.#calls -= CALLS_PER_REPEAT
    return true
  }
}
