/**
 * Longest time that closing waits for charges in progress. Billing resolves the rest when their holds expire.
 */
const MAX_DRAIN_MS = 20_000

/** Work that outlasts the call that started it, for example charges for callers who have left. */
export class Background implements AsyncDisposable {
  readonly #running = new Set<Promise<unknown>>()
  readonly #maxDrainMs: number

  constructor(maxDrainMs = MAX_DRAIN_MS) {
    this.#maxDrainMs = maxDrainMs
  }

  /** Tracks the work until it ends, and returns it. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work)
    const untrack = () => void this.#running.delete(work)
    work.then(untrack, untrack)
    return work
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise: waited, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, this.#maxDrainMs)
    await Promise.race([Promise.allSettled(this.#running), waited])
    clearTimeout(timer)
  }
}
