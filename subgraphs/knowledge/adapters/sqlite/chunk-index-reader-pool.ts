import { ServiceUnavailable } from '../../../common/errors.ts'
import type { WorkerClient } from '../../../common/process/threads/worker-rpc.ts'

/** Calls waiting for a thread: about ten seconds of searches. Beyond that a caller should be told to come back. */
const MAX_WAITING = 500

/**
 * Gives each call to a free thread, in order of arrival. A thread starts when a call finds no other free. A call whose
 * signal aborts while it waits never runs.
 */
export class ReaderPool implements AsyncDisposable {
  readonly #start: () => WorkerClient
  readonly #maxThreads: number
  readonly #threads: WorkerClient[] = []
  readonly #free: WorkerClient[] = []
  readonly #waiting = new Set<(thread: WorkerClient) => void>()

  constructor(start: () => WorkerClient, maxThreads: number) {
    this.#start = start
    this.#maxThreads = maxThreads
  }

  /** Rejects at once when `signal` aborts. A thread that is running the call finishes it, and its answer is dropped. */
  call<T>(method: string, args: readonly unknown[], signal?: AbortSignal): Promise<T> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    if (this.#waiting.size >= MAX_WAITING) return Promise.reject(new ServiceUnavailable('The chunk index'))
    return new Promise<T>((resolve, reject) => {
      const start = (thread: WorkerClient) => {
        const running = thread.call<T>(method, args).then(resolve, reject)
        void running.finally(() => {
          signal?.removeEventListener('abort', abort)
          this.#release(thread)
        })
      }
      const abort = () => {
        this.#waiting.delete(start)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', abort, { once: true })
      const thread = this.#free.pop() ?? this.#startOne()
      if (thread) start(thread)
      else this.#waiting.add(start)
    })
  }

  #startOne(): WorkerClient | undefined {
    if (this.#threads.length === this.#maxThreads) return undefined
    const thread = this.#start()
    this.#threads.push(thread)
    return thread
  }

  #release(thread: WorkerClient): void {
    const [next] = this.#waiting
    if (!next) {
      this.#free.push(thread)
      return
    }
    this.#waiting.delete(next)
    next(thread)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread[Symbol.asyncDispose]()))
  }
}
