/** Of so many calls of an engine one may be repeated: one that fails them all gets a tenth more, not twice as many (Google SRE book, "Handling Overload"). */
const CALLS_PER_REPEAT = 10
/** What quiet times save up and a new engine begins with: enough for the bad luck of a few calls, too little to keep a failing engine from recovering. */
const MOST_REPEATS = 10

/** How often calls of one engine may be repeated. */
export class RetryBudget {
  /** Calls that no repeat has used up. */
  #calls = MOST_REPEATS * CALLS_PER_REPEAT

  called(): void {
    this.#calls = Math.min(this.#calls + 1, MOST_REPEATS * CALLS_PER_REPEAT)
  }

  /** Takes one repeat; false when none is left. */
  take(): boolean {
    if (this.#calls < CALLS_PER_REPEAT) return false
    this.#calls -= CALLS_PER_REPEAT
    return true
  }
}
