import type { Transferable } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { ServiceUnavailable, TooBusy } from '../../errors.ts'
import { FairSemaphore } from '../fair-semaphore.ts'
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

/** The thread did not start, or has died, or is closed or full. */
export class ThreadUnavailable extends Error {}

/** Limits of one call. A thread that exceeds them is ended. */
export interface ThreadLimits {
  /** CPU time, in milliseconds. A busy machine does not change it. */
  readonly cpuMs: number
  /** Wall time without the start of the thread, in milliseconds. */
  readonly wallMs: number
  /** Heap of the thread, with the code that it loads. */
  readonly heapMb: number
}

export interface ThreadOptions {
  /** Default: none. With limits, a thread has one call at a time. */
  readonly limits?: ThreadLimits
  /** A thread without calls for so long is ended. Default: it is not. */
  readonly idleMs?: number
}

/** Calls in flight of one thread. More are refused, so that a stalled thread cannot fill the memory. */
const MAX_CALLS = 20_000
/** A thread loads its code in a second at most. */
const START_MS = 30_000

/** A worker thread of `piscina`. It starts with the first call. If it dies, its calls fail, and the next call starts another. */
export class Thread implements AsyncDisposable {
  readonly #limits: ThreadLimits | undefined
  readonly #pool: Piscina
  readonly #calls = new Set<Promise<unknown>>()
  readonly #closing = new AbortController()

  constructor({ limits, idleMs = Number.POSITIVE_INFINITY }: ThreadOptions = {}) {
    this.#limits = limits
    this.#pool = new Piscina({
      minThreads: 0,
      maxThreads: 1,
      concurrentTasksPerWorker: limits ? 1 : MAX_CALLS,
      idleTimeout: idleMs,
      ...(limits && { resourceLimits: { maxOldGenerationSizeMb: limits.heapMb, maxYoungGenerationSizeMb: limits.heapMb / 4 } }),
      // A thread that waits by `Atomics` runs none of its timers.
      atomics: 'disabled',
      recordTiming: false,
    })
    // The thread has died without a call. Calls that waited for its start fail.
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
    if (this.#closing.signal.aborted) throw new ThreadUnavailable('the thread is closed')
    if (this.#calls.size >= MAX_CALLS) throw new ThreadUnavailable('too many calls are in flight')
    const call = this.#limits ? this.#runWithin(this.#limits, file, task) : this.#run(file, task, transfer)
    this.#calls.add(call)
    const reply = await call.finally(() => this.#calls.delete(call))
    if ('error' in reply) throw Object.assign(new Error(reply.error.message), reply.error)
    return reply.value as T
  }

  /** Ends calls that have limits, and waits for all others. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled(this.#calls)
    await this.#pool.destroy()
  }

  async #runWithin(limits: ThreadLimits, file: URL, task: unknown): Promise<Reply> {
    // It loads the code.
    await this.#run(file, undefined, [], AbortSignal.timeout(START_MS))
    const late = new AbortController()
    const measuring = await this.#measure(limits, late)
    return this.#run(file, task, [], late.signal)
      .catch(({ cause }) => {
        if (late.signal.aborted) throw new ThreadLimitExceeded('time')
        if (cause.code === 'ERR_WORKER_OUT_OF_MEMORY') throw new ThreadLimitExceeded('memory')
        throw new ThreadUnavailable('the thread has died', { cause })
      })
      .finally(() => clearInterval(measuring))
  }

  /** Aborts once the thread has taken too much time from now on. */
  async #measure({ cpuMs, wallMs }: ThreadLimits, late: AbortController): Promise<NodeJS.Timeout | undefined> {
    const [worker] = this.#pool.threads
    const before = await worker?.cpuUsage()
    const until = performance.now() + wallMs
    const check = async () => {
      if (performance.now() >= until) return late.abort()
      const { user, system } = await worker!.cpuUsage(before)
      if ((user + system) / 1_000 >= cpuMs) late.abort()
    }
    // A thread that has just ended cannot be measured.
    return setInterval(() => check().catch(() => undefined), Math.min(cpuMs, wallMs) / 4)
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
 * several threads, one organization leaves one free for the next. A thread starts when a call finds no other free.
 */
export class FairThreads implements AsyncDisposable {
  readonly #what: string
  readonly #options: ThreadOptions
  readonly #permits: FairSemaphore
  readonly #threads: Thread[] = []
  readonly #free: Thread[] = []
  #isClosed = false

  /** `what` names it in errors: `schema check`. */
  constructor(what: string, { maxThreads, ...options }: ThreadOptions & { readonly maxThreads: number }) {
    this.#what = what
    this.#options = options
    // Each call says how many may wait.
    this.#permits = new FairSemaphore(maxThreads, Number.POSITIVE_INFINITY)
  }

  /**
   * As `Thread.call`. Rejects at once when the signal aborts; a thread that runs the call then finishes it.
   * @throws {TooBusy} too many calls of the organization wait
   * @throws {ServiceUnavailable} the thread did not start or has died, or all are closed
   */
  async call<T>(file: URL, task: unknown, { organizationId, maxWaiting = Number.POSITIVE_INFINITY, signal = NO_END }: Caller): Promise<T> {
    signal.throwIfAborted()
    let release = this.#permits.tryAcquire(organizationId)
    if (!release && this.#permits.waitingOf(organizationId) >= maxWaiting)
      throw new TooBusy(`Too many calls of your organization wait for the ${this.#what}.`)
    release ??= await this.#permits.acquire(organizationId, signal)
    return untilAborted(this.#run<T>(file, task).finally(release), signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#threads.map((thread) => thread[Symbol.asyncDispose]()))
  }

  async #run<T>(file: URL, task: unknown): Promise<T> {
    if (this.#isClosed) throw new ServiceUnavailable(`The ${this.#what}`)
    const thread = this.#free.pop() ?? this.#start()
    try {
      return await thread.call<T>(file, task)
    } catch (cause) {
      throw cause instanceof ThreadUnavailable ? new ServiceUnavailable(`The ${this.#what}`, { cause }) : cause
    } finally {
      this.#free.push(thread)
    }
  }

  #start(): Thread {
    const thread = new Thread(this.#options)
    this.#threads.push(thread)
    return thread
  }
}
