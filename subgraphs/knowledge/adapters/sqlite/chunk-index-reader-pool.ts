import { ServiceUnavailable, TooBusy } from '../../../common/errors.ts'
import { FairPlaces } from '../../../common/process/fair-places.ts'
import type { WorkerClient } from '../../../common/process/threads/worker-rpc.ts'
import { untilAborted } from '../../../common/process/until-aborted.ts'

const WHAT = 'The chunk index'

export interface Caller {
  /** Whose turn it is. */
  readonly organizationId: string
  /** The call is refused when so many calls of the organization wait. Default: it waits in any case. */
  readonly maxWaiting?: number
  readonly signal?: AbortSignal
}

/**
 * Threads that answer one call at a time. Organizations take turns, and the calls of one have the order of their arrival.
 * A thread starts when a call finds no other free.
 */
export class ReaderPool implements AsyncDisposable {
  readonly #start: () => WorkerClient
  readonly #places: FairPlaces
  readonly #threads: WorkerClient[] = []
  readonly #free: WorkerClient[] = []
  /** Waiting calls by organization. */
  readonly #waiting = new Map<string, number>()
  #isClosed = false

  constructor(start: () => WorkerClient, maxThreads: number) {
    this.#start = start
    // Here each call says how many may wait.
    this.#places = new FairPlaces(maxThreads, Number.POSITIVE_INFINITY)
  }

  /**
   * Rejects at once when the signal aborts. A call that waits then never runs. A thread that is running it finishes, and
   * its answer is dropped.
   * @throws {TooBusy} too many calls of the organization wait
   */
  async call<T>(method: string, args: readonly unknown[], caller: Caller): Promise<T> {
    const { signal = new AbortController().signal } = caller
    signal.throwIfAborted()
    // A call that finds a thread free begins at once, and so before the pool can be closed.
    const leave = this.#places.tryTake(caller.organizationId) ?? (await this.#wait(caller, signal))
    return untilAborted(this.#run<T>(method, args).finally(leave), signal)
  }

  async #wait({ organizationId, maxWaiting = Number.POSITIVE_INFINITY }: Caller, signal: AbortSignal): Promise<() => void> {
    const before = this.#waiting.get(organizationId) ?? 0
    if (before >= maxWaiting) throw new TooBusy('Too many calls of your organization wait for the chunk index.')
    this.#waiting.set(organizationId, before + 1)
    try {
      return await this.#places.take(organizationId, signal)
    } finally {
      const left = this.#waiting.get(organizationId)! - 1
      if (left > 0) this.#waiting.set(organizationId, left)
      else this.#waiting.delete(organizationId)
    }
  }

  async #run<T>(method: string, args: readonly unknown[]): Promise<T> {
    if (this.#isClosed) throw new ServiceUnavailable(WHAT)
    const thread = this.#free.pop() ?? this.#startOne()
    try {
      return await thread.call<T>(method, args)
    } finally {
      this.#free.push(thread)
    }
  }

  #startOne(): WorkerClient {
    const thread = this.#start()
    this.#threads.push(thread)
    return thread
  }

  /** Waiting calls fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#threads.map((thread) => thread[Symbol.asyncDispose]()))
  }
}
