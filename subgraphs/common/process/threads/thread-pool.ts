import type { Transferable } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { ServiceUnavailable, TooBusy } from '../../errors.ts'
import { FairPlaces } from '../fair-places.ts'
import { untilAborted } from '../until-aborted.ts'
import type { Reply } from './thread-calls.ts'

/** A call took too much time or memory. Its thread has ended. */
export class ThreadLimitExceeded extends Error {
  readonly limit: 'time' | 'memory'

  constructor(limit: 'time' | 'memory') {
    super(`a thread took too much ${limit}`)
    this.limit = limit
  }
}

/** The thread did not start, or has died, or its pool is closed or full. */
export class ThreadUnavailable extends Error {}

export interface ThreadPoolOptions {
  readonly maxThreads: number
  /** Calls that one thread has at once. Default: 1. */
  readonly callsPerThread?: number
  /** Heap of one thread, with the code that it loads. Default: that of Node. */
  readonly heapMb?: number
  /** Limit of one call, without the start of its thread. A thread that takes longer is ended. Default: none. */
  readonly timeMs?: number
  /** A thread without calls for so long is ended. Default: none is. */
  readonly idleMs?: number
}

/** Calls in flight of one pool. More are refused, so that a stalled thread cannot fill the memory. */
export const MAX_CALLS = 20_000
/** A thread loads its code in a second at most. */
const START_MS = 30_000

/**
 * Worker threads of `piscina`. They start when they are needed. A thread that dies fails its calls, and the next call
 * starts another.
 */
export class ThreadPool implements AsyncDisposable {
  readonly #timeMs: number | undefined
  readonly #pool: Piscina
  readonly #calls = new Set<Promise<unknown>>()
  readonly #closing = new AbortController()

  constructor({ maxThreads, callsPerThread = 1, heapMb, timeMs, idleMs = Number.POSITIVE_INFINITY }: ThreadPoolOptions) {
    this.#timeMs = timeMs
    this.#pool = new Piscina({
      minThreads: 0,
      maxThreads,
      concurrentTasksPerWorker: callsPerThread,
      idleTimeout: idleMs,
      ...(heapMb && { resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: heapMb / 4 } }),
      // A thread that waits by `Atomics` runs none of its timers.
      atomics: 'disabled',
      recordTiming: false,
    })
    // A thread has died without a call. Calls that waited for its start fail, if no other thread can take them.
    this.#pool.on('error', () => {
      if (this.#pool.threads.length === 0) void this.#pool.destroy()
    })
  }

  /**
   * Runs the function that `file` exports as `call`, which `answering` or `servingFiles` has made.
   * @throws {ThreadLimitExceeded} the call took more than the limits
   * @throws {ThreadUnavailable} it may have run
   * @throws {Error} what the code in the thread threw: its name, message, stack and `data`
   */
  async call<T>(file: URL, task: unknown, transfer: readonly Transferable[] = []): Promise<T> {
    if (this.#closing.signal.aborted) throw new ThreadUnavailable('the threads are closed')
    if (this.#calls.size >= MAX_CALLS) throw new ThreadUnavailable('too many calls are in flight')
    const call = this.#timeMs === undefined ? this.#run(file, task, transfer) : this.#runWithin(this.#timeMs, file, task)
    this.#calls.add(call)
    const reply = await call.finally(() => this.#calls.delete(call))
    if ('error' in reply) throw Object.assign(new Error(reply.error.message), reply.error)
    return reply.value as T
  }

  /** Ends calls that have a time limit, and waits for all others. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled(this.#calls)
    await this.#pool.destroy()
  }

  async #runWithin(timeMs: number, file: URL, task: unknown): Promise<Reply> {
    // It loads the code.
    await this.#run(file, undefined, [], AbortSignal.timeout(START_MS))
    const late = AbortSignal.timeout(timeMs)
    return this.#run(file, task, [], late).catch(({ cause }) => {
      if (late.aborted && !this.#closing.signal.aborted) throw new ThreadLimitExceeded('time')
      if (cause.code === 'ERR_WORKER_OUT_OF_MEMORY') throw new ThreadLimitExceeded('memory')
      throw new ThreadUnavailable('the thread has died', { cause })
    })
  }

  /** A signal ends the thread, too. */
  async #run({ href }: URL, task: unknown, transfer: readonly Transferable[], signal?: AbortSignal): Promise<Reply> {
    const ends = signal && AbortSignal.any([signal, this.#closing.signal])
    try {
      return await this.#pool.run(task, { filename: href, name: 'call', transferList: [...transfer], ...(ends && { signal: ends }) })
    } catch (cause) {
      throw new ThreadUnavailable('the thread has died', { cause })
    }
  }
}

/** Whose call it is. */
export interface Caller {
  readonly organizationId: string
  /** The call is refused while so many calls of the organization wait. Default: it waits. */
  readonly maxWaiting?: number
  readonly signal?: AbortSignal
}

const NO_END = new AbortController().signal

/**
 * Threads with one call at a time each, in which organizations take turns. The calls of one keep their order. With
 * several threads, one organization leaves one free for the next.
 */
export class FairThreads implements AsyncDisposable {
  readonly #what: string
  readonly #pool: ThreadPool
  readonly #places: FairPlaces

  /** `what` names it in errors: `schema check`. */
  constructor(what: string, options: Omit<ThreadPoolOptions, 'callsPerThread'>) {
    this.#what = what
    this.#pool = new ThreadPool(options)
    // Each call says how many may wait.
    this.#places = new FairPlaces(options.maxThreads, Number.POSITIVE_INFINITY)
  }

  /**
   * As `ThreadPool.call`. Rejects at once when the signal aborts; a thread that runs the call then finishes it.
   * @throws {TooBusy} too many calls of the organization wait
   * @throws {ServiceUnavailable} the thread did not start or has died, or all are closed
   */
  async call<T>(file: URL, task: unknown, { organizationId, maxWaiting = Number.POSITIVE_INFINITY, signal = NO_END }: Caller): Promise<T> {
    signal.throwIfAborted()
    let leave = this.#places.tryTake(organizationId)
    if (!leave && this.#places.waitingOf(organizationId) >= maxWaiting)
      throw new TooBusy(`Too many calls of your organization wait for the ${this.#what}.`)
    leave ??= await this.#places.take(organizationId, signal)
    const call = this.#pool.call<T>(file, task).finally(leave)
    return untilAborted(call, signal).catch((cause) => {
      throw cause instanceof ThreadUnavailable ? new ServiceUnavailable(`The ${this.#what}`, { cause }) : cause
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#pool[Symbol.asyncDispose]()
  }
}
