import { ServiceUnavailable } from '../../errors.ts'
import { FairPlaces, orTooBusy } from '../fair-places.ts'
import { untilAborted } from '../until-aborted.ts'
import { BoundedThread, ThreadLimitExceeded, type ThreadLimits } from './bounded-thread.ts'

export interface BoundedThreadsOptions {
  /** It must call `serveQuestions`. */
  readonly file: URL
  /** What it is, in errors: `query planner`. */
  readonly what: string
  /** What each thread finds as its `workerData`. */
  readonly data?: unknown
  readonly maxThreads: number
  /** Questions of one organization that wait for a thread. */
  readonly maxWaiting: number
  readonly limits: ThreadLimits
  /** Threads end when none was asked for so long. Default: five minutes. */
  readonly idleMs?: number
}

const IDLE_MS = 300_000

/**
 * Threads for work that a caller's text can make long. Each answers one question at a time, within limits of time and
 * memory. Organizations take turns; with two threads, one organization uses at most one. Threads start when they are
 * needed.
 */
export class BoundedThreads<Question, Answer> implements AsyncDisposable {
  readonly #options: BoundedThreadsOptions
  readonly #places: FairPlaces
  readonly #threads = new Set<BoundedThread<Question, Answer>>()
  readonly #resting: BoundedThread<Question, Answer>[] = []
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: BoundedThreadsOptions) {
    this.#options = options
    this.#places = new FairPlaces(options.maxThreads, options.maxWaiting)
  }

  /**
   * @throws {ThreadLimitExceeded} the answer takes more than the limits
   * @throws {ServiceUnavailable} the thread could not start, or has ended
   * @throws {TooBusy} too many questions of the organization wait
   * @throws {Error} what the code in the thread threw, as far as it crossed threads
   * @throws the reason of the aborted signal. A question that a thread has begun with is still answered, to nobody
   */
  async ask(organizationId: string, question: Question, signal: AbortSignal): Promise<Answer> {
    const why = `Too many calls of your organization wait for the ${this.#options.what}.`
    const leave = await this.#places.take(organizationId, signal).catch(orTooBusy(why))
    return untilAborted(this.#answer(question).finally(leave), signal)
  }

  /** Waiting and running questions fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#idle)
    await Promise.all([...this.#threads].map((thread) => this.#end(thread)))
  }

  async #answer(question: Question): Promise<Answer> {
    if (this.#isClosed) throw this.#unavailable()
    const thread = this.#takeThread()
    try {
      return await thread.ask(question)
    } catch (error) {
      throw thread.isGone && !(error instanceof ThreadLimitExceeded) ? this.#unavailable(error) : error
    } finally {
      if (!thread.isGone) this.#resting.push(thread)
      clearTimeout(this.#idle)
      this.#idle = setTimeout(() => void this.#endResting(), this.#options.idleMs ?? IDLE_MS).unref()
      if (thread.isGone) await this.#end(thread)
    }
  }

  #takeThread(): BoundedThread<Question, Answer> {
    clearTimeout(this.#idle)
    const resting = this.#resting.pop()
    if (resting && !resting.isGone) return resting
    if (resting) void this.#end(resting)
    const { file, what, limits, data } = this.#options
    const thread = new BoundedThread<Question, Answer>(file, what, limits, data)
    this.#threads.add(thread)
    return thread
  }

  async #endResting(): Promise<void> {
    await Promise.all(this.#resting.splice(0).map((thread) => this.#end(thread)))
  }

  async #end(thread: BoundedThread<Question, Answer>): Promise<void> {
    this.#threads.delete(thread)
    await thread[Symbol.asyncDispose]()
  }

  #unavailable(cause?: unknown): ServiceUnavailable {
    return new ServiceUnavailable(`The ${this.#options.what}`, { cause })
  }
}
