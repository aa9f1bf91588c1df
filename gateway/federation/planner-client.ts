import type { QueryPlan } from '@apollo/query-planner'
import { KisError } from '../../subgraphs/common/errors.ts'
import { ThreadLimitExceeded, type ThreadLimits } from '../../subgraphs/common/process/threads/bounded-thread.ts'
import { BoundedThreads } from '../../subgraphs/common/process/threads/bounded-threads.ts'
import type { Prepared } from '../documents.ts'
import type { Planned } from './planner-thread.ts'

/** What identifies an operation, and says what it is. */
export type ToPlan = Pick<Prepared, 'text' | 'operationName' | 'hash'>

/**
 * Different operations of one organization that wait to be planned. Plans are kept, so only new operations wait, such as
 * those of a frontend that has just changed.
 */
const MAX_WAITING = 100
/** The largest operations that `limitsRule` lets through take 0.1 s. The planner takes some 60 MB. */
const LIMITS: ThreadLimits = { cpuMs: 3_000, wallMs: 20_000, heapMb: 256 }

/** Apollo's planner in a thread of its own: loading it takes up to a second, and the plan of a large operation a tenth. */
export class PlannerClient implements AsyncDisposable {
  readonly #threads: BoundedThreads<Planned, QueryPlan>
  /** By organization and operation: a thousand clients may send the same new operation at once. */
  readonly #underWay = new Map<string, Promise<QueryPlan>>()
  /** No caller ends a plan by leaving: others may wait for it. */
  readonly #noEnd = new AbortController().signal

  constructor(sdl: string, limits = LIMITS) {
    this.#threads = new BoundedThreads({
      file: new URL('./planner-thread.ts', import.meta.url),
      what: 'query planner',
      data: sdl,
      maxThreads: 1,
      maxWaiting: MAX_WAITING,
      limits,
    })
  }

  /**
   * @throws {KisError} `operation_too_complex`: planning it takes too long, or too much memory
   * @throws {ServiceUnavailable} the thread could not start, or has ended
   * @throws {TooBusy} too many operations of the organization wait
   */
  plan({ text, operationName, hash }: ToPlan, organizationId: string): Promise<QueryPlan> {
    const key = JSON.stringify([organizationId, hash, operationName])
    const known = this.#underWay.get(key)
    if (known) return known
    const plan = this.#ask({ text, operationName }, organizationId).finally(() => this.#underWay.delete(key))
    this.#underWay.set(key, plan)
    return plan
  }

  async #ask(planned: Planned, organizationId: string): Promise<QueryPlan> {
    try {
      return await this.#threads.ask(organizationId, planned, this.#noEnd)
    } catch (error) {
      if (!(error instanceof ThreadLimitExceeded)) throw error
      throw new KisError(
        'operation_too_complex',
        `Planning the operation takes too much ${error.limit}. Ask for fewer fields at once, or spread fewer fragments.`,
        { cause: error },
      )
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#threads[Symbol.asyncDispose]()
  }
}
