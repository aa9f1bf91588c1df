/**
 * Reports once when a reader has waited too long for a piece of an answer. Bytes alone do not count: comments, empty
 * events and single bytes of a line would keep a connection open forever. A reader that asks for nothing does not wait.
 * Each stream has one timer.
 */
export class IdleWatch {
  readonly #ms: number
  readonly #onIdle: () => void
  #waitsSince: number | null = null
  #timer: NodeJS.Timeout

  constructor(ms: number, onIdle: () => void) {
    this.#ms = ms
    this.#onIdle = onIdle
    this.#timer = this.#checkIn(ms)
  }

  /** Call it when the reader starts to wait for the next piece. */
  waits(): void {
    this.#waitsSince ??= performance.now()
  }

  /** Call it when the reader has the piece. */
  has(): void {
    this.#waitsSince = null
  }

  /** Idempotent. */
  stop(): void {
    clearTimeout(this.#timer)
  }

  #checkIn(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      const leftMs = this.#waitsSince === null ? this.#ms : this.#waitsSince + this.#ms - performance.now()
      if (leftMs <= 0) this.#onIdle()
      else this.#timer = this.#checkIn(Math.ceil(leftMs))
    }, ms).unref()
  }
}
