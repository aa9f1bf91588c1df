import { createHash } from 'node:crypto'
import type { QueryPlan } from '@apollo/query-planner'
import { WeighedCache } from '../../subgraphs/common/link/weighed-cache.ts'
import type { Prepared } from '../documents.ts'

/** Bytes of plans; that of an operation has a few kilobytes. */
const MAX_KEPT_BYTES = 32 * 1024 * 1024
/** A plan holds this many bytes for each character of its JSON: objects beside their texts. */
const BYTES_PER_CHARACTER = 4

/** What @apollo/gateway keeps plans in, before it runs them; plans of operations that fail are let go of again. */
export class PlanCache {
  #plans = new WeighedCache<QueryPlan>(MAX_KEPT_BYTES)

  async get(key: string): Promise<QueryPlan | undefined> {
    return this.#plans.get(key)
  }

  async set(key: string, plan: QueryPlan): Promise<void> {
    // Apollo does not say whose it is, so that an owner is a sixteenth of all operations.
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
