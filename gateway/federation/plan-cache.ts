import type { QueryPlan } from '@apollo/query-planner'
import { WeighedCache } from '../../subgraphs/common/link/weighed-cache.ts'
import { FairSemaphore, orTooBusy } from '../../subgraphs/common/process/fair-semaphore.ts'

/** Bytes of cached plans. A plan takes a few kilobytes. One organization may use a quarter of the limit. */
const MAX_PLAN_BYTES = 32 * 1024 * 1024
/** Bytes of memory for each character of a plan's JSON, because of the objects around its texts. */
const BYTES_PER_CHARACTER = 4
/** Operations of one organization that wait to be planned. Plans are cached, so only new operations wait. */
const MAX_WAITING = 100
/** The pause after planning, as a multiple of the planning time: planning takes at most a quarter of the event loop. */
const PAUSE = 3

/**
 * Plans as `ApolloGateway` stores them, by keys of `planKey`. Organizations share plans. Each plan counts against the
 * organization that sent its operation first.
 */
export class PlanCache {
  readonly #plans = new WeighedCache<QueryPlan>(MAX_PLAN_BYTES)
  readonly #permits = new FairSemaphore(1, MAX_WAITING)
  /** Never aborts: a caller that leaves must not cancel planning, because others may wait for the plan. */
  readonly #noEnd = new AbortController().signal

  find(key: string): QueryPlan | undefined {
    return this.#plans.get(operationOf(key))
  }

  /**
   * Returns the plan to execute; that of a subscription runs for each of its events. Undefined: the caller must plan
   * now. Organizations plan in round robin.
   * @throws {TooBusy} too many operations of the organization wait to be planned
   */
  async get(key: string): Promise<QueryPlan | undefined> {
    if (!this.find(key)) await this.#acquirePlan(key)
    const plan = this.find(key)
    if (plan?.node?.kind !== 'Subscription') return plan
    const { primary, rest } = plan.node
    return { kind: 'QueryPlan', node: { kind: 'Sequence', nodes: rest ? [primary, rest] : [primary] } }
  }

  async #acquirePlan(key: string): Promise<void> {
    const why = 'Too many new operations of your organization wait to be planned.'
    const release = await this.#permits.acquire(organizationOf(key), this.#noEnd).catch(orTooBusy(why))
    // Another caller has planned the operation meanwhile.
    if (this.find(key)) return release()
    const beganAt = performance.now()
    // `ApolloGateway` plans within the event-loop tick in which it finds no plan.
    setImmediate(() => setTimeout(release, PAUSE * (performance.now() - beganAt)))
  }

  retain(key: string, plan: QueryPlan): void {
    if (!this.find(key)) void this.set(key, plan)
  }

  async set(key: string, plan: QueryPlan): Promise<void> {
    this.#plans.set(operationOf(key), plan, JSON.stringify(plan).length * BYTES_PER_CHARACTER, organizationOf(key))
  }

  async delete(key: string): Promise<boolean> {
    this.#plans.delete(operationOf(key))
    return true
  }

  clear(): void {}
}

/** @param organizationId the organization that sent the operation */
export function planKey(organizationId: string, hash: string, operationName = ''): string {
  return `${organizationId} ${hash} ${operationName}`
}

function operationOf(key: string): string {
  return key.slice(key.indexOf(' ') + 1)
}

function organizationOf(key: string): string {
  return key.slice(0, key.indexOf(' '))
}
