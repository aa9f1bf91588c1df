import type { ResolverContext } from '../../common/link/subgraph.ts'
import type { ServedDeps } from '../use-cases/deps.ts'

export type Context = ResolverContext<ServedDeps>
