import type { ReadBudget } from '../../common/documents/long-records.ts'
import type { ResolverContext, Subgraph } from '../../common/link/subgraph.ts'
import type { OwnedNodes } from '../ports/owned-nodes.ts'
import type { DefinitionReads } from '../use-cases/definition-reads.ts'
import type { ServedDeps } from '../use-cases/deps.ts'

/** What each operation has of its own. */
export type Context = ResolverContext<ServedDeps> & {
  /** Definitions and runs may be long. */
  readonly budget: ReadBudget
  readonly definitions: DefinitionReads
  readonly nodes: OwnedNodes
  /** As the subgraph's own. */
  readonly problems: Subgraph['problems']
}
