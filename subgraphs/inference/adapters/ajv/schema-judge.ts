import { ServiceUnavailable } from '../../../common/errors.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { SchemaFailure, type SchemaFault, type SchemaJudge } from '../../ports/schema-judge.ts'
import { JUDGE_LIMITS, type JudgeLimits, JudgeThread } from './judge-thread.ts'
import type { Question } from './judging.ts'

/**
 * An organization uses at most one thread, so that an organization whose checks always time out leaves the other free.
 */
const MAX_THREADS = 2
/** Waiting questions of one organization: more than its runs ask at once. Each has a text of up to a megabyte. */
const MAX_WAITING = 500

interface Job {
  readonly organizationId: string
  readonly question: Question
  readonly resolve: (faults: readonly SchemaFault[]) => void
  readonly reject: (error: unknown) => void
}

/** Checks with Ajv, in threads that are ended when a question takes too long. Organizations take turns. */
export class AjvSchemaJudge implements SchemaJudge, AsyncDisposable {
  readonly #limits: JudgeLimits
  /** By organization; the first one is next. */
  readonly #waiting = new Map<string, Job[]>()
  /** Organizations that use a thread. */
  readonly #asking = new Set<string>()
  readonly #idle: JudgeThread[] = []
  readonly #threads = new Set<JudgeThread>()
  #isClosed = false

  constructor(limits: JudgeLimits = JUDGE_LIMITS) {
    this.#limits = limits
  }

  async check(organizationId: string, schema: ProtocolObject, signal: AbortSignal): Promise<void> {
    await this.#ask(organizationId, { schema: JSON.stringify(schema), value: null }, signal)
  }

  judge(organizationId: string, schema: ProtocolObject, json: string, signal: AbortSignal): Promise<readonly SchemaFault[]> {
    return this.#ask(organizationId, { schema: JSON.stringify(schema), value: json }, signal)
  }

  /** Waiting and running questions fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    for (const { reject } of [...this.#waiting.values()].flat()) reject(unavailable())
    this.#waiting.clear()
    await Promise.all([...this.#threads].map((thread) => thread[Symbol.asyncDispose]()))
  }

  async #ask(organizationId: string, question: Question, signal: AbortSignal): Promise<readonly SchemaFault[]> {
    signal.throwIfAborted()
    const waiting = this.#waiting.get(organizationId) ?? []
    if (this.#isClosed || waiting.length >= MAX_WAITING) throw unavailable()
    const { promise, resolve, reject } = Promise.withResolvers<readonly SchemaFault[]>()
    const job = { organizationId, question, resolve, reject }
    waiting.push(job)
    this.#waiting.set(organizationId, waiting)
    const leave = () => {
      this.#forget(job)
      reject(signal.reason)
    }
    signal.addEventListener('abort', leave, { once: true })
    this.#pump()
    return promise.finally(() => signal.removeEventListener('abort', leave))
  }

  #pump(): void {
    for (const [organizationId, [job, ...others]] of [...this.#waiting]) {
      if (this.#asking.size === MAX_THREADS) return
      if (this.#asking.has(organizationId)) continue
      this.#waiting.delete(organizationId)
      // After those that have waited meanwhile.
      if (others.length > 0) this.#waiting.set(organizationId, others)
      void this.#run(job!)
    }
  }

  #forget(job: Job): void {
    const { organizationId } = job
    const left = this.#waiting.get(organizationId)?.filter((other) => other !== job) ?? []
    if (left.length > 0) this.#waiting.set(organizationId, left)
    else this.#waiting.delete(organizationId)
  }

  async #run({ organizationId, question, resolve, reject }: Job): Promise<void> {
    this.#asking.add(organizationId)
    const thread = this.#idle.pop() ?? this.#start()
    try {
      const answer = await thread.ask(question)
      if ('failure' in answer) reject(new SchemaFailure(answer.failure))
      else resolve(answer.faults)
    } catch (error) {
      reject(error instanceof SchemaFailure ? error : unavailable(error))
    }
    if (thread.isGone) await this.#end(thread)
    else this.#idle.push(thread)
    this.#asking.delete(organizationId)
    this.#pump()
  }

  #start(): JudgeThread {
    const thread = new JudgeThread(this.#limits)
    this.#threads.add(thread)
    return thread
  }

  async #end(thread: JudgeThread): Promise<void> {
    this.#threads.delete(thread)
    await thread[Symbol.asyncDispose]()
  }
}

function unavailable(cause?: unknown): ServiceUnavailable {
  return new ServiceUnavailable('The schema check', { cause })
}
