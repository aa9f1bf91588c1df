import { parentPort, Worker } from 'node:worker_threads'
import { type RemoteError, remoteError, revived } from './worker-rpc.ts'

export interface ThreadLimits {
  /** CPU time of one question, in milliseconds. A busy machine does not change it. */
  readonly cpuMs: number
  /** Wall time of one question, however busy the machine is, in milliseconds. */
  readonly wallMs: number
  /** Heap of the thread, with the code that it loads. */
  readonly heapMb: number
}

/** The thread took too long to answer, or too much memory. */
export class ThreadLimitExceeded extends Error {
  readonly limit: 'time' | 'memory'

  constructor(limit: 'time' | 'memory') {
    super(`a thread took too much ${limit}`)
    this.limit = limit
  }
}

type Reply<Answer> = { readonly value: Answer } | { readonly error: RemoteError }

/** A thread loads its code in a second at most. */
const START_MS = 30_000

/** A thread that answers one question after another. Once it fails to answer, it cannot be used again. */
export class BoundedThread<Question, Answer> implements AsyncDisposable {
  readonly #worker: Worker
  readonly #limits: ThreadLimits
  readonly #started: Promise<unknown>
  #isGone = false

  /** `file` must call `serveQuestions`. It finds `data` as its `workerData`. */
  constructor(file: URL, name: string, limits: ThreadLimits, data?: unknown) {
    this.#limits = limits
    this.#worker = new Worker(file, {
      name,
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: limits.heapMb, maxYoungGenerationSizeMb: limits.heapMb / 4 },
    })
    this.#worker.on('error', () => {
      this.#isGone = true
    })
    this.#started = this.#next(START_MS)
    this.#started.catch(() => undefined)
  }

  /** True: dispose of it, it can answer no more. */
  get isGone(): boolean {
    return this.#isGone
  }

  /**
   * Ask one question at a time.
   * @throws {ThreadLimitExceeded} it took more than the limits; the thread is gone
   * @throws {Error} the thread could not start, or has ended, and is gone; or its code threw this error
   */
  async ask(question: Question): Promise<Answer> {
    const reply = await this.#exchange(question)
    if ('error' in reply) throw revived(reply.error)
    return reply.value
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isGone = true
    await this.#worker.terminate()
  }

  async #exchange(question: Question): Promise<Reply<Answer>> {
    this.#worker.ref()
    try {
      await this.#started.catch((error) => {
        throw new Error('the thread did not start', { cause: error })
      })
      const before = await this.#worker.cpuUsage()
      const reply = this.#next(this.#limits.wallMs, before)
      this.#worker.postMessage(question)
      return (await reply) as Reply<Answer>
    } catch (error) {
      this.#isGone = true
      throw error
    } finally {
      this.#worker.unref()
    }
  }

  /** The next message of the thread. `before`: also limits the CPU time, counted from there. */
  #next(wallMs: number, before?: NodeJS.CpuUsage): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const { cpuMs } = this.#limits
    const until = performance.now() + wallMs
    const look = async () => {
      if (performance.now() >= until) return reject(new ThreadLimitExceeded('time'))
      if (!before) return
      const { user, system } = await this.#worker.cpuUsage(before)
      if ((user + system) / 1_000 >= cpuMs) reject(new ThreadLimitExceeded('time'))
    }
    // A thread that has just ended cannot be measured. Its events say why it ended.
    const timer = setInterval(() => look().catch(() => undefined), before ? Math.min(cpuMs, wallMs) / 4 : wallMs)
    const onError = (error: NodeJS.ErrnoException) =>
      reject(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? new ThreadLimitExceeded('memory') : error)
    const onExit = () => reject(new Error('the thread has ended'))
    this.#worker.once('message', resolve).once('error', onError).once('exit', onExit)
    return promise.finally(() => {
      clearInterval(timer)
      this.#worker.off('message', resolve).off('error', onError).off('exit', onExit)
    })
  }
}

/** In the thread: answers each question with what `answer` returns or throws. */
export function serveQuestions<Question>(answer: (question: Question) => unknown): void {
  parentPort!.on('message', (question: Question) => parentPort!.postMessage(replyTo(question, answer)))
  parentPort!.postMessage('ready')
}

function replyTo<Question>(question: Question, answer: (question: Question) => unknown): Reply<unknown> {
  try {
    return { value: answer(question) }
  } catch (error) {
    return { error: remoteError(error) }
  }
}
