import { formatUsd } from '../../../common/usd.ts'
import { ACCOUNTS, balanceChange, type LedgerEntry } from './ledger.ts'
import { UNITS } from './money.ts'
import type { UsageSums } from './usage-total.ts'
import type { Wallet } from './wallet.ts'

/**
 * Rules of the ledger that can be broken. `gap`: entries of the sequence are missing. `postings`: an entry does not sum
 * to zero. `balance`: an entry's balance does not follow from the entry before. `wallet`: the wallet is not the sum of
 * its entries. `holds`: the held amount is not the sum of the open holds. `usage`: a charge and its usage record
 * differ. `total`: a day's total is not the sum of its usage records.
 */
const LEDGER_FINDING_KINDS = ['gap', 'postings', 'balance', 'wallet', 'holds', 'usage', 'total'] as const

/** One broken rule. */
export interface LedgerFault {
  readonly kind: (typeof LEDGER_FINDING_KINDS)[number]
  /** The id of the entry, usage record or total; null: the wallet. */
  readonly subject: string | null
  /** The expected value in words; null: none. */
  readonly expected: string | null
  readonly found: string | null
}

/** The sums of all entries up to a sequence number. */
export interface LedgerState {
  readonly sequence: number
  /** The balance of the latest entry. */
  readonly balance: bigint
  /** Sums of the postings. */
  readonly available: bigint
  readonly held: bigint
  /** False once an entry was missing or wrong. The sums are then invalid. */
  readonly isSound: boolean
}

/** The state before the first entry. */
export const NO_ENTRIES: LedgerState = { sequence: 0, balance: 0n, available: 0n, held: 0n, isSound: true }

/**
 * Returns the ledger with one more entry, and the faults of that entry. An entry is checked against the one before it,
 * so that one fault is not reported for all later entries.
 */
export function auditEntry(
  before: LedgerState,
  entry: LedgerEntry,
): { readonly after: LedgerState; readonly faults: readonly LedgerFault[] } {
  const faults: LedgerFault[] = []
  const { _id: subject, sequence, postings } = entry
  const balance = BigInt(entry.balance)
  if (sequence !== before.sequence + 1)
    faults.push({ kind: 'gap', subject, expected: `entry ${before.sequence + 1}`, found: `entry ${sequence}` })
  // `bigint`, because the sum of `absorbed` may be too large for numbers.
  const sum = ACCOUNTS.reduce((total, account) => total + BigInt(postings[account] ?? 0), 0n)
  if (sum !== 0n) faults.push({ kind: 'postings', subject, expected: '0 USD', found: usd(sum) })
  const follows = before.balance + BigInt(balanceChange(postings))
  if (sequence === before.sequence + 1 && balance !== follows)
    faults.push({ kind: 'balance', subject, expected: usd(follows), found: usd(balance) })
  const after = {
    sequence,
    balance,
    available: before.available + BigInt(postings.wallet ?? 0),
    held: before.held + BigInt(postings.held ?? 0),
    isSound: before.isSound && faults.length === 0,
  }
  return { after, faults }
}

/** Checks a wallet against all its entries, including those in its outbox. */
export function auditWallet(entries: LedgerState, wallet: Wallet): readonly LedgerFault[] {
  const faults: LedgerFault[] = []
  const isWhole = entries.sequence === wallet.sequence
  if (!isWhole) faults.push({ kind: 'gap', subject: null, expected: `entry ${wallet.sequence}`, found: `entry ${entries.sequence}` })
  const [expected, found] = [entries, wallet].map(({ available, held }) => `${usd(available)} available, ${usd(held)} held`)
  if (isWhole && entries.isSound && expected !== found) faults.push({ kind: 'wallet', subject: null, expected: expected!, found: found! })
  const holds = Object.values(wallet.holds).reduce((sum, { amount }) => sum + BigInt(amount), 0n)
  if (holds !== BigInt(wallet.held)) faults.push({ kind: 'holds', subject: null, expected: usd(holds), found: usd(wallet.held) })
  return faults
}

/** Formats sums: `2 calls, 0.003 USD, 40 inputTokens`. */
export function describeSums({ calls, amount, quantities }: UsageSums): string {
  const used = UNITS.flatMap((unit) => (quantities[unit] === 0n ? [] : `${quantities[unit]} ${unit}`))
  return [`${calls} calls`, usd(amount), ...used].join(', ')
}

/** Formats an amount of nano-USD for messages: `0.15 USD`. */
export function usd(nanoUsd: bigint | number): string {
  return `${formatUsd(BigInt(nanoUsd))} USD`
}
