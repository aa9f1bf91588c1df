import type { SiftBudget } from '../../common/documents/lists.ts'
import type { ResolverContext, Subgraph } from '../../common/link/subgraph.ts'
import type { Deps } from '../use-cases/deps.ts'
import type { RecordReads } from '../use-cases/record-reads.ts'

export type Context = ResolverContext<Deps> & {
  readonly records: RecordReads
  readonly sifting: SiftBudget
  /** The subgraph's `problems`. */
  readonly problems: Subgraph['problems']
}
