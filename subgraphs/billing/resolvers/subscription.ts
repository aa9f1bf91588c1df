import { NotFound } from '../../common/errors.ts'
import { requireScope } from '../../common/identity/principal.ts'
import type { WalletChange } from '../ledger/domain/wallet-change.ts'
import { followUsage, type UsageEvent } from '../ledger/use-cases/follow-usage.ts'
import { followWallet } from '../ledger/use-cases/follow-wallet.ts'
import type { SubscriptionResolvers, WalletChangedResolvers } from './generated.ts'

export const Subscription: SubscriptionResolvers = {
  usageRecorded: {
    subscribe(_parent, { after }, { deps, caller }) {
      const { organizationId } = requireScope(caller, 'billing:read')
      return followUsage(deps, organizationId, after ?? null)
    },
    resolve: (event: UsageEvent) => event,
  },

  walletChanged: {
    subscribe(_parent, { after }, { deps, caller }) {
      const { organizationId } = requireScope(caller, 'billing:read')
      return followWallet(deps, organizationId, after ?? null)
    },
    resolve: (change: WalletChange) => change,
  },
}

export const WalletChanged: WalletChangedResolvers = {
  async wallet({ organizationId }, _args, { deps }) {
    const wallet = await deps.collections.wallets.findOne({ _id: organizationId })
    if (!wallet) throw new NotFound('organization', organizationId)
    return wallet
  },
  balance: ({ balance }) => BigInt(balance),
}
