import { Worker } from 'node:worker_threads'
import { ServiceUnavailable } from '../../../common/errors.ts'
import { SchemaFailure } from '../../ports/schema-judge.ts'
import type { Answer, Question } from './judging.ts'

export interface JudgeLimits {
  /** CPU time of one question. Real schemas take milliseconds, and a busy machine does not change that. */
  readonly cpuMs: number
  /** Wall time of one question, however busy the machine is. */
  readonly wallMs: number
  /** Heap of one thread. Ajv takes about 15 MB of it. */
  readonly heapMb: number
}

export const JUDGE_LIMITS: JudgeLimits = { cpuMs: 1_000, wallMs: 10_000, heapMb: 128 }
/** A thread loads Ajv in 0.2 s. */
const START_MS = 30_000

/** A thread that answers one question after another. After a failure it cannot be used again. */
export class JudgeThread implements AsyncDisposable {
  readonly #worker: Worker
  readonly #limits: JudgeLimits
  readonly #started: Promise<unknown>
  #isGone = false

  constructor(limits: JudgeLimits) {
    this.#limits = limits
    this.#worker = new Worker(new URL('./thread.ts', import.meta.url), {
      name: 'schema judge',
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
   * @throws {SchemaFailure} it exceeded the limits
   * @throws {ServiceUnavailable} the thread could not start
   */
  async ask(question: Question): Promise<Answer> {
    this.#worker.ref()
    try {
      await this.#started.catch((error) => {
        throw new ServiceUnavailable('The schema check', { cause: error })
      })
      const before = await this.#worker.cpuUsage()
      const answer = this.#next(this.#limits.wallMs, before)
      this.#worker.postMessage(question)
      return (await answer) as Answer
    } catch (error) {
      this.#isGone = true
      throw error
    } finally {
      this.#worker.unref()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isGone = true
    await this.#worker.terminate()
  }

  /** The next message of the thread. `before`: also limits the CPU time, counted from there. */
  #next(wallMs: number, before?: NodeJS.CpuUsage): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const { cpuMs, heapMb } = this.#limits
    const until = performance.now() + wallMs
    const tooLong = () => new SchemaFailure(`Checking a value against it takes longer than ${cpuMs} ms.`)
    const look = async () => {
      if (performance.now() >= until) return reject(tooLong())
      if (!before) return
      const { user, system } = await this.#worker.cpuUsage(before)
      if ((user + system) / 1_000 >= cpuMs) reject(tooLong())
    }
    // A thread that has just ended cannot be measured. Its events say why it ended.
    const timer = setInterval(() => look().catch(() => undefined), before ? Math.min(cpuMs, wallMs) / 4 : wallMs)
    const onError = (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'ERR_WORKER_OUT_OF_MEMORY'
          ? new SchemaFailure(`Checking a value against it takes more than ${heapMb} MB of memory.`)
          : error,
      )
    const onExit = () => reject(new Error('the thread has ended'))
    this.#worker.once('message', resolve).once('error', onError).once('exit', onExit)
    return promise.finally(() => {
      clearInterval(timer)
      this.#worker.off('message', resolve).off('error', onError).off('exit', onExit)
    })
  }
}
