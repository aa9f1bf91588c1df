/**
 * Tells once when a reader has waited too long for a piece of an answer. Bytes alone do not count: comments, empty events and single bytes of a line
 * keep a connection open for ever and bring nothing. A reader that asks for nothing waits for nothing. One timer a stream, whatever it brings.
 */
export class IdleWatch {
  readonly #ms: number
  readonly #onIdle: () => void
  #waitsSince: number | null = null
  #timer: NodeJS.Timeout

  constructor(ms: number, onIdle: () => void) {
    this.#ms = ms
    this.#onIdle = onIdle
    this.#timer = this.#lookIn(ms)
  }

  /** The reader waits for the next piece. */
  waits(): void {
    this.#waitsSince ??= performance.now()
  }

  /** The reader has it. */
  has(): void {
    this.#waitsSince = null
  }

  /** Repeatable. */
  stop(): void {
    clearTimeout(this.#timer)
  }

  #lookIn(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      const leftMs = this.#waitsSince === null ? this.#ms : this.#waitsSince + this.#ms - performance.now()
      if (leftMs <= 0) this.#onIdle()
      else this.#timer = this.#lookIn(Math.ceil(leftMs))
    }, ms).unref()
  }
}
