import { createHash } from 'node:crypto'
import type { QueryPlan } from '@apollo/query-planner'
import { WeighedCache } from '../../subgraphs/common/link/weighed-cache.ts'
import type { Prepared } from '../documents.ts'

/** Bytes of plans. A plan has a few kilobytes. */
const MAX_KEPT_BYTES = 32 * 1024 * 1024
/** Memory that a plan takes for each character of its JSON, because of the objects around its texts. */
const BYTES_PER_CHARACTER = 4

/**
 * The cache in which @apollo/gateway puts plans before it runs them. Plans of operations that fail are dropped again.
 */
export class PlanCache {
  #plans = new WeighedCache<QueryPlan>(MAX_KEPT_BYTES)

  async get(key: string): Promise<QueryPlan | undefined> {
    return this.#plans.get(key)
  }

  async set(key: string, plan: QueryPlan): Promise<void> {
    // Apollo does not say whose plan it is, so the first digit of the hash stands for an owner: a sixteenth of all
    // operations.
    this.#plans.set(key, plan, JSON.stringify(plan).length * BYTES_PER_CHARACTER, key.slice(0, 1))
  }

  clear(): void {
    this.#plans = new WeighedCache(MAX_KEPT_BYTES)
  }

  async delete(key: string): Promise<boolean> {
    this.#plans.delete(key)
    return true
  }

  forget({ hash, operationName }: Prepared): void {
    this.#plans.delete(operationName ? createHash('sha256').update(hash).update(operationName).digest('hex') : hash)
  }
}
