import { requirePrincipal, requireScope } from '../../common/identity/principal.ts'
import type { WalletChange } from '../ledger/domain/wallet-change.ts'
import { followUsage, type UsageEvent } from '../ledger/use-cases/follow-usage.ts'
import { followWallet } from '../ledger/use-cases/follow-wallet.ts'
import { getWallet } from '../ledger/use-cases/read-ledger.ts'
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
  wallet: ({ organizationId }, _args, { deps, caller }) => getWallet(deps, requirePrincipal(caller), organizationId),
  balance: ({ balance }) => BigInt(balance),
}
