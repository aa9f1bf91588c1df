import { FairThreads, ThreadLimitExceeded, type ThreadLimits } from '../../../common/process/threads/thread.ts'
import type { ProtocolObject } from '../../ports/engines.ts'
import { SchemaFailure, type SchemaFault, type SchemaJudge } from '../../ports/schema-judge.ts'
import type { Question, Verdict } from './judging.ts'

/**
 * An organization uses at most one thread, so that an organization whose checks always time out leaves the other free.
 */
const MAX_THREADS = 2
/** Waiting questions of one organization: more than its runs ask at once. Each has a text of up to a megabyte. */
const MAX_WAITING = 500
const THREAD = new URL('./judge-thread.ts', import.meta.url)
/** Real schemas take milliseconds. Ajv takes about 15 MB. */
const LIMITS: ThreadLimits = { cpuMs: 1_000, wallMs: 10_000, heapMb: 128 }
const IDLE_MS = 300_000

/** Checks with Ajv, in threads that are ended when a check takes too long. */
export class AjvSchemaJudge implements SchemaJudge, AsyncDisposable {
  readonly #limits: ThreadLimits
  readonly #threads: FairThreads

  constructor(limits = LIMITS) {
    this.#limits = limits
    this.#threads = new FairThreads('schema check', { maxThreads: MAX_THREADS, limits, idleMs: IDLE_MS })
  }

  async check(organizationId: string, schema: ProtocolObject, signal: AbortSignal): Promise<void> {
    await this.#judge(organizationId, { schema: JSON.stringify(schema), value: null }, signal)
  }

  judge(organizationId: string, schema: ProtocolObject, json: string, signal: AbortSignal): Promise<readonly SchemaFault[]> {
    return this.#judge(organizationId, { schema: JSON.stringify(schema), value: json }, signal)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#threads[Symbol.asyncDispose]()
  }

  async #judge(organizationId: string, question: Question, signal: AbortSignal): Promise<readonly SchemaFault[]> {
    const caller = { organizationId, maxWaiting: MAX_WAITING, signal }
    const verdict = await this.#threads.call<Verdict>(THREAD, question, caller).catch((error) => {
      throw error instanceof ThreadLimitExceeded ? this.#failureOf(error) : error
    })
    if ('failure' in verdict) throw new SchemaFailure(verdict.failure)
    return verdict.faults
  }

  #failureOf({ limit }: ThreadLimitExceeded): SchemaFailure {
    const most = limit === 'time' ? `longer than ${this.#limits.cpuMs} ms` : `more than ${this.#limits.heapMb} MB of memory`
    return new SchemaFailure(`Checking a value against it takes ${most}.`)
  }
}
