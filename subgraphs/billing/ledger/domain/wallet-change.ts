import { balanceChange, type LedgerEntry } from './ledger.ts'

/** A change of the balance, in nano-USD. */
export interface WalletChange {
  readonly organizationId: string
  readonly balance: number
  /** True: the balance is below the threshold. */
  readonly isLow: boolean
  /** The direction in which the change crossed the threshold; null: it did not cross it. */
  readonly crossed: 'fell' | 'rose' | null
  readonly at: Date
  /** Sequence number of the entry. */
  readonly cursor: string
}

/**
 * Returns the balance changes of these entries in order, as few as show every crossing of the threshold (null: there is
 * none). A change that another follows is left out unless it crosses the threshold. Movements between available and
 * held amounts are no changes.
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
