import type { ExecutionResult } from 'graphql'
import type { Sink } from 'graphql-ws'

/**
 * Unread events of one subscription. Beyond this limit the subscription ends with an error; no event is ever dropped.
 */
const MAX_UNREAD_EVENTS = 10_000

/** A limited queue between a socket that pushes and a reader that pulls. */
export class UnreadEvents {
  readonly #queue: ExecutionResult[] = []
  readonly #failure: (cause: unknown) => ExecutionResult
  #over = false
  #wake: (() => void) | undefined

  /** @param failure creates the reader's last event when the socket fails */
  constructor(failure: (cause: unknown) => ExecutionResult) {
    this.#failure = failure
  }

  readonly sink: Sink<ExecutionResult> = {
    next: (event) => {
      if (this.#queue.length < MAX_UNREAD_EVENTS) this.#push(event as ExecutionResult, false)
      else this.#push(this.#failure(new Error('the reader is too slow')), true)
    },
    /** A list contains errors of the operation. Anything else is a failed socket. */
    error: (error) => this.#push(Array.isArray(error) ? { errors: error } : this.#failure(error), true),
    complete: () => {
      this.#over = true
      this.#wake?.()
    },
  }

  async next(): Promise<IteratorResult<ExecutionResult, undefined>> {
    if (this.#queue.length === 0 && !this.#over) await new Promise<void>((resolve) => (this.#wake = resolve))
    const value = this.#queue.shift()
    return value ? { done: false, value } : { done: true, value: undefined }
  }

  #push(event: ExecutionResult, last: boolean): void {
    if (this.#over) return
    this.#queue.push(event)
    this.#over = last
    this.#wake?.()
  }
}
