import type { BatchedReads } from '../../common/documents/batched-reads.ts'
import type { SiftBudget } from '../../common/documents/lists.ts'
import type { ResolverContext, Subgraph } from '../../common/link/subgraph.ts'
import type { BillingDeps } from '../use-cases/deps.ts'
import type { ApiKey } from '../use-cases/tables.ts'

export type Context = ResolverContext<BillingDeps> & {
  readonly keys: BatchedReads<ApiKey>
  readonly sifting: SiftBudget
  /** The `problems` of the subgraph. */
  readonly problems: Subgraph['problems']
}
