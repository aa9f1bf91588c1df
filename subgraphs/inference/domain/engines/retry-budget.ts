/**
 * One in this many calls of an engine may be repeated. An engine that fails all its calls then gets a tenth more, not
 * twice as many (Google SRE book, "Handling Overload").
 */
const CALLS_PER_REPEAT = 10
/**
 * Repeats that quiet times save up, and that a new engine starts with: enough for a few unlucky calls, too few to keep
 * a failing engine from recovering.
 */
const MAX_RETRIES = 10

/** Limits how often calls of one engine are repeated. */
export class RetryBudget {
  /** Calls that no repeat has used up. */
  #calls = MAX_RETRIES * CALLS_PER_REPEAT

  called(): void {
    this.#calls = Math.min(this.#calls + 1, MAX_RETRIES * CALLS_PER_REPEAT)
  }

  /** Takes one repeat; false when none is left. */
  tryConsume(): boolean {
    if (this.#calls < CALLS_PER_REPEAT) return false
    this.#calls -= CALLS_PER_REPEAT
    return true
  }
}
