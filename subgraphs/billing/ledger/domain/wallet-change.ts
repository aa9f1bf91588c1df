import { balanceChange, type LedgerEntry } from './ledger.ts'

/** What has become of a balance, in nano-USD. */
export interface WalletChange {
  readonly organizationId: string
  readonly balance: number
  /** Below the threshold. */
  readonly isLow: boolean
  /** Which way the threshold was crossed; null: it was not. */
  readonly crossed: 'fell' | 'rose' | null
  readonly at: Date
  /** Sequence of the entry. */
  readonly cursor: string
}

/**
 * The changes that entries in order make, as few as tell of every crossing of the threshold (null: there is none): one that is followed by another
 * is left out unless it crosses. What only moves between available and held is no change.
 */
export function balanceChanges(entries: readonly LedgerEntry[], threshold: number | null): readonly WalletChange[] {
  const isLow = (balance: number) => threshold !== null && balance < threshold
  const changes = entries.flatMap(({ organizationId, balance, postings, at, sequence }): readonly WalletChange[] => {
    const moved = balanceChange(postings)
    if (moved === 0) return []
    const [was, is] = [isLow(balance - moved), isLow(balance)]
    return [{ organizationId, balance, isLow: is, crossed: was === is ? null : is ? 'fell' : 'rose', at, cursor: String(sequence) }]
  })
  return changes.filter(({ crossed }, i) => crossed !== null || i === changes.length - 1)
}
