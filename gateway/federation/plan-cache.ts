import { WeighedCache } from '../../subgraphs/common/link/weighed-cache.ts'
import type { Prepared } from '../documents.ts'
import type { ExecutablePlan } from './execute-plan.ts'

/** Bytes of plans. A plan has a few kilobytes, and an organization a quarter of them. */
const MAX_KEPT_BYTES = 32 * 1024 * 1024
/** Memory that a plan takes for each character of its JSON, because of the objects around its texts. */
const BYTES_PER_CHARACTER = 4
/** Memory that the shape of the answer takes for each token of the operation: a field is a few functions. */
const BYTES_PER_TOKEN = 512

/** Plans, by operation. Each counts against the organization that sent it first. Those of operations that fail are dropped again. */
export class PlanCache {
  readonly #plans = new WeighedCache<ExecutablePlan>(MAX_KEPT_BYTES)

  get(prepared: Prepared): ExecutablePlan | undefined {
    return this.#plans.get(keyOf(prepared))
  }

  set(prepared: Prepared, plan: ExecutablePlan, organizationId: string): void {
    const { node = null } = plan
    const weight = JSON.stringify(node).length * BYTES_PER_CHARACTER + (prepared.document.tokenCount ?? 0) * BYTES_PER_TOKEN
    this.#plans.set(keyOf(prepared), plan, weight, organizationId)
  }

  forget(prepared: Prepared): void {
    this.#plans.delete(keyOf(prepared))
  }
}

function keyOf({ hash, operationName }: Prepared): string {
  return operationName ? `${hash} ${operationName}` : hash
}
