import type { QueryPlan } from '@apollo/query-planner'
import { WeighedCache } from '../../subgraphs/common/link/weighed-cache.ts'
import { FairSemaphore, orTooBusy } from '../../subgraphs/common/process/fair-semaphore.ts'

/** Bytes of plans. A plan has a few kilobytes, and an organization a quarter of them. */
const MAX_PLAN_BYTES = 32 * 1024 * 1024
/** Memory that a plan takes for each character of its JSON, because of the objects around its texts. */
const BYTES_PER_CHARACTER = 4
/** Operations of one organization that wait to be planned. Plans are cached, so only new operations wait. */
const MAX_WAITING = 100
/** The pause after a plan, by the time that it took: planning takes at most a quarter of the event loop. */
const PAUSE = 3

/**
 * Plans as `ApolloGateway` stores them, by keys of `planKey`. Organizations share plans, and each plan counts against
 * the organization that sent its operation first.
 */
export class PlanCache {
  readonly #plans = new WeighedCache<QueryPlan>(MAX_PLAN_BYTES)
  readonly #permits = new FairSemaphore(1, MAX_WAITING)
  /** No caller ends a turn by leaving: others may wait for the plan. */
  readonly #noEnd = new AbortController().signal

  find(key: string): QueryPlan | undefined {
    return this.#plans.get(operationOf(key))
  }

  /**
   * Returns the plan to execute: that of a subscription runs for each of its events. Undefined: it is the caller's turn to
   * plan. Organizations take turns at that.
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
    // Another has planned it meanwhile.
    if (this.find(key)) return release()
    const beganAt = performance.now()
    // `ApolloGateway` plans within the event-loop tick in which a plan is missing.
    setImmediate(() => setTimeout(release, PAUSE * (performance.now() - beganAt)))
  }

  /** Caches the plan if it is not cached. */
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

/** `organizationId`: who sent the operation. */
export function planKey(organizationId: string, hash: string, operationName = ''): string {
  return `${organizationId} ${hash} ${operationName}`
}

function operationOf(key: string): string {
  return key.slice(key.indexOf(' ') + 1)
}

function organizationOf(key: string): string {
  return key.slice(0, key.indexOf(' '))
}
