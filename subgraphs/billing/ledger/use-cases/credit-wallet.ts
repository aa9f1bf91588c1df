import { KisError, ServiceUnavailable } from '../../../common/errors.ts'
import { formatUsd } from '../../../common/usd.ts'
import { checkName } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { creditEntryId } from '../domain/ids.ts'
import { balanceChange, creditPostings, type LedgerEntry } from '../domain/ledger.ts'
import { MAX_NANO_USD } from '../domain/money.ts'
import { MAX_PENDING_ENTRIES, type Wallet } from '../domain/wallet.ts'

interface Credit {
  readonly kind: 'top_up' | 'adjustment'
  readonly organizationId: string
  /** Nano-USD. The amount of an adjustment may be negative. */
  readonly amount: bigint
  /** The operator's own id of the payment. */
  readonly reference: string
}

/**
 * Adds or removes credit, once for each organization and reference. A repetition returns the same entry.
 * @throws {KisError} `idempotency_conflict`: the reference belongs to another credit
 * @throws {KisError} `unsupported_value`: the amount is not allowed, or the balance would leave its limits
 */
export async function creditWallet(deps: BillingDeps, credit: Credit): Promise<{ readonly entry: LedgerEntry; readonly wallet: Wallet }> {
  const { kind, organizationId, amount } = credit
  const reference = checkName(credit.reference, 'reference')
  if (amount === 0n || (kind === 'top_up' && amount < 0n)) throw amountError('The amount must be above zero, or not zero in an adjustment.')
  if (amount > MAX_NANO_USD || amount < -MAX_NANO_USD) throw balanceLimit()
  const _id = creditEntryId(organizationId, reference)
  const { value: entry, wallet } = await deps.writer.change(organizationId, { id: _id }, (draft) => {
    const first = draft.entry(_id)
    if (first) return requireSame(first, credit)
    if (BigInt(draft.balance) + amount > MAX_NANO_USD) throw balanceLimit()
    if (BigInt(draft.available) + amount < 0n)
      throw amountError(`Only ${formatUsd(BigInt(draft.available))} USD are available. The held amount cannot be subtracted.`)
    if (draft.pendingEntries >= MAX_PENDING_ENTRIES) throw new ServiceUnavailable('The ledger')
    return draft.post({ _id, kind, postings: creditPostings(amount), reference, at: deps.clock.now() })
  })
  return { entry, wallet }
}

function requireSame(entry: LedgerEntry, { kind, amount, reference }: Credit): LedgerEntry {
  if (entry.kind === kind && BigInt(balanceChange(entry.postings)) === amount) return entry
  throw new KisError('idempotency_conflict', `The reference \`${reference}\` belongs to another credit of this organization.`, {
    param: 'reference',
  })
}

function balanceLimit(): KisError {
  return amountError('A balance is at most 9,000,000 USD.')
}

function amountError(message: string): KisError {
  return new KisError('unsupported_value', message, { param: 'amount' })
}
