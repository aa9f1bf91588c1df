import type { BillingDeps } from '../../use-cases/deps.ts'
import type { LedgerEntry } from '../domain/ledger.ts'
import { balanceChanges, type WalletChange } from '../domain/wallet-change.ts'
import { followLedger } from './follow-ledger.ts'

/**
 * Follows an organization's balance. Pending changes become one event, but each crossing of the threshold has its own.
 */
export function followWallet(
  deps: BillingDeps,
  organizationId: string,
  after: string | null,
): AsyncIterableIterator<WalletChange, undefined> {
  return followLedger(deps, organizationId, after, (entries) => toWalletChanges(deps, organizationId, entries))
}

/** Returns the balance changes of these entries, by the current threshold. */
export async function toWalletChanges(
  { collections }: Pick<BillingDeps, 'collections'>,
  organizationId: string,
  entries: readonly LedgerEntry[],
): Promise<readonly WalletChange[]> {
  const organization = await collections.organizations.findOne({ _id: organizationId })
  return balanceChanges(entries, organization?.lowBalanceThreshold ?? null)
}
