import type { BillingDeps } from '../../use-cases/deps.ts'
import type { LedgerEntry } from '../domain/ledger.ts'
import { balanceChanges, type WalletChange } from '../domain/wallet-change.ts'
import { followLedger } from './follow-ledger.ts'

/** Changes of an organization's balance. Those that wait together are one event, except that each crossing of the threshold has its own. */
export function followWallet(
  deps: BillingDeps,
  organizationId: string,
  after: string | null,
): AsyncIterableIterator<WalletChange, undefined> {
  return followLedger(deps, organizationId, after, (entries) => walletChangesOf(deps, organizationId, entries))
}

/** What these entries have made of the balance, by the threshold as it is now. */
export async function walletChangesOf(
  { collections }: Pick<BillingDeps, 'collections'>,
  organizationId: string,
  entries: readonly LedgerEntry[],
): Promise<readonly WalletChange[]> {
  const organization = await collections.organizations.findOne({ _id: organizationId })
  return balanceChanges(entries, organization?.lowBalanceThreshold ?? null)
}
