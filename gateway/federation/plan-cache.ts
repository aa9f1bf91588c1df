import { setImmediate as nextTick } from 'node:timers/promises'
import type { QueryPlan } from '@apollo/query-planner'
import { WeighedCache } from '../../subgraphs/common/link/weighed-cache.ts'

/** Bytes of plans. A plan has a few kilobytes, and an organization a quarter of them. */
const MAX_PLAN_BYTES = 32 * 1024 * 1024
/** Memory that a plan takes for each character of its JSON, because of the objects around its texts. */
const BYTES_PER_CHARACTER = 4

/**
 * Plans as `ApolloGateway` stores them, by keys of `planKey`. Organizations share plans, and each plan counts against
 * the organization that sent its operation first.
 */
export class PlanCache {
  readonly #plans = new WeighedCache<QueryPlan>(MAX_PLAN_BYTES)
  readonly #beingPlanned = new Set<string>()

  find(key: string): QueryPlan | undefined {
    return this.#plans.get(operationOf(key))
  }

  /**
   * Returns the plan to execute: that of a subscription runs for each of its events. `ApolloGateway` plans within the
   * event-loop tick in which a plan is missing, so others who need it at once wait for the next tick.
   */
  async get(key: string): Promise<QueryPlan | undefined> {
    const operation = operationOf(key)
    if (!this.find(key) && this.#beingPlanned.has(operation)) await nextTick()
    const plan = this.find(key)
    if (!plan) {
      this.#beingPlanned.add(operation)
      setImmediate(() => this.#beingPlanned.delete(operation))
    }
    if (plan?.node?.kind !== 'Subscription') return plan
    const { primary, rest } = plan.node
    return { kind: 'QueryPlan', node: { kind: 'Sequence', nodes: rest ? [primary, rest] : [primary] } }
  }

  /** Caches the plan if it is not cached. */
  retain(key: string, plan: QueryPlan): void {
    if (!this.find(key)) void this.set(key, plan)
  }

  async set(key: string, plan: QueryPlan): Promise<void> {
    this.#plans.set(operationOf(key), plan, JSON.stringify(plan).length * BYTES_PER_CHARACTER, key.slice(0, key.indexOf(' ')))
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
