import type { ResolverContext } from '../../common/link/subgraph.ts'
import type { Deps } from '../use-cases/deps.ts'

export type Context = ResolverContext<Deps>
