import { NotFound } from '../../common/errors.ts'
import { requireScope } from '../../common/identity/principal.ts'
import type { ResolverContext, Resolvers } from '../../common/link/subgraph.ts'
import type { WalletChange } from '../ledger/domain/wallet-change.ts'
import { followUsage, type UsageEvent } from '../ledger/use-cases/follow-usage.ts'
import { followWallet } from '../ledger/use-cases/follow-wallet.ts'
import type { BillingDeps } from '../use-cases/deps.ts'

type Context = ResolverContext<BillingDeps>
type After = { readonly after?: string | null }

export const Subscription: Resolvers<BillingDeps>[string] = {
  usageRecorded: {
    subscribe(_parent: unknown, { after }: After, { deps, caller }: Context) {
      const { organizationId } = requireScope(caller, 'billing:read')
      return followUsage(deps, organizationId, after ?? null)
    },
    resolve: (event: UsageEvent) => event,
  },

  walletChanged: {
    subscribe(_parent: unknown, { after }: After, { deps, caller }: Context) {
      const { organizationId } = requireScope(caller, 'billing:read')
      return followWallet(deps, organizationId, after ?? null)
    },
    resolve: (change: WalletChange) => change,
  },
}

export const WalletChanged = {
  async wallet({ organizationId }: WalletChange, _args: object, { deps }: Context) {
    const wallet = await deps.collections.wallets.findOne({ _id: organizationId })
    if (!wallet) throw new NotFound('organization', organizationId)
    return wallet
  },
  balance: ({ balance }: WalletChange) => BigInt(balance),
}
