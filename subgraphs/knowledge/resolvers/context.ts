import type { SiftBudget } from '../../common/documents/list-sifted.ts'
import type { ResolverContext } from '../../common/link/subgraph.ts'
import type { Deps } from '../use-cases/deps.ts'
import type { RecordReads } from '../use-cases/record-reads.ts'

export type Context = ResolverContext<Deps> & { readonly records: RecordReads; readonly sifting: SiftBudget }
