/**
 * Closing waits at most this long for charges still under way; what is left is resolved by billing when its holds
 * expire.
 */
const MAX_DRAIN_MS = 20_000

/** Work that outlives the call that began it: charges of callers who have left. */
export class Background implements AsyncDisposable {
  readonly #running = new Set<Promise<unknown>>()
  readonly #maxDrainMs: number

  constructor(maxDrainMs = MAX_DRAIN_MS) {
    this.#maxDrainMs = maxDrainMs
  }

  /** Keeps hold of the work until it ends, and gives it back. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work)
    const forget = () => void this.#running.delete(work)
    work.then(forget, forget)
    return work
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise: waited, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, this.#maxDrainMs)
    await Promise.race([Promise.allSettled(this.#running), waited])
    clearTimeout(timer)
  }
}
