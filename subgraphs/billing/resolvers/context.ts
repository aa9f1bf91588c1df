import type { ResolverContext } from '../../common/link/subgraph.ts'
import type { BillingDeps } from '../use-cases/deps.ts'

export type Context = ResolverContext<BillingDeps>
