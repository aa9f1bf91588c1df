import type { ResolverContext } from '../../common/link/subgraph.ts'
import type { BillingDeps } from '../deps.ts'

export type Context = ResolverContext<BillingDeps>
