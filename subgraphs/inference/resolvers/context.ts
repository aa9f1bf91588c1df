import type { ReadBudget } from '../../common/documents/long-records.ts'
import type { ResolverContext, Subgraph } from '../../common/link/subgraph.ts'
import type { OwnedNodes } from '../ports/owned-nodes.ts'
import type { DefinitionReads } from '../use-cases/definition-reads.ts'
import type { ServedDeps } from '../use-cases/deps.ts'

/** The context of one operation. */
export type Context = ResolverContext<ServedDeps> & {
  /** Limits how much one operation reads, because definitions and runs may be long. */
  readonly budget: ReadBudget
  readonly definitions: DefinitionReads
  readonly nodes: OwnedNodes
  /** The `problems` of the subgraph. */
  readonly problems: Subgraph['problems']
}
