import type { KeySpending } from './key-spending.ts'
import type { LedgerEntry } from './ledger.ts'
import type { Quantities } from './money.ts'
import type { StoredRateCard } from './rate-card.ts'
import type { Operation, UsageRecord } from './usage.ts'

/**
 * An organization's account. This one document contains everything that must be consistent, so that one write preserves
 * the consistency: the available amount, the open holds that reserve the rest, and the latest ledger entries until the
 * pump has copied them.
 */
export type Wallet = {
  /** The organization's id. */
  readonly _id: string
  /** Grows with each change except the pump's, which do not affect any decision. */
  readonly revision: number
  /** The organization's revision with the rules in force. Older principals get no hold. Absent: 0. */
  readonly rules?: number
  /** Nano-USD that a new hold may take; never below zero. */
  readonly available: number
  /** Nano-USD that the open holds reserve. */
  readonly held: number
  /** Sequence number of the latest entry. */
  readonly sequence: number
  /**
   * No open hold expires before this time, which may be too early. Absent: no hold was open at the reaper's last check.
   */
  readonly nextExpiryAt?: Date
  readonly holds: { readonly [id: string]: Hold }
  /** Spending by key: for keys with a limit, or with charges of their own or of a descendant. */
  readonly spending: { readonly [apiKeyId: string]: KeySpending }
  /** The pages of the latest month in which OCR read any. Absent: OCR has read none. */
  readonly ocr?: PageCount
  /** The end of the ledger, oldest entry first. */
  readonly outbox: readonly PendingEntry[]
}

/** A reserved amount. */
export type Hold = CallHold | RunHold

type Reserved = {
  readonly amount: number
  readonly expiresAt: Date
  readonly apiKeyId: string
  /** The ancestors of the key. Absent: none. */
  readonly ancestors?: readonly string[]
  readonly requestId: string
  /** The process that does the work. The work ends if the process dies. Absent: another process may continue. */
  readonly holder?: string
}

/** The hold of one call. Its terms never change; the expiry and the checkpoint do. */
export type CallHold = Reserved & {
  /** The run that contains the call as a step. The amount came from the run's hold, and the rest returns there. */
  readonly runHoldId?: string
  readonly modelId: string
  readonly operation: Operation
  readonly rateCard: StoredRateCard
  readonly rateCardVersion: string
  /** What is charged if the hold expires. */
  readonly checkpoint: Quantities
  /** The pages that the hold has counted in the wallet. Unused pages are subtracted again. Absent: none. */
  readonly ocr?: PageCount
}

/** Pages that OCR has read or is reading in a month of UTC, such as `2026-11`. */
export type PageCount = { readonly month: string; readonly pages: number }

/**
 * The hold of a run of several calls, each of which takes its own hold out of it. `amount` is what no call has taken. A
 * run's hold is never charged.
 */
export type RunHold = Reserved & { readonly isRun: true }

/** Returns the keys in whose spending the hold counts. */
export function listSpenders({ apiKeyId, ancestors = [] }: Pick<Hold, 'apiKeyId' | 'ancestors'>): readonly string[] {
  return [apiKeyId, ...ancestors]
}

/** Returns the run that contains the hold's call as a step, if any. */
export function pickRun(hold: Hold): Pick<CallHold, 'runHoldId'> {
  return isRunHold(hold) || hold.runHoldId === undefined ? {} : { runHoldId: hold.runHoldId }
}

export function isRunHold(hold: Hold): hold is RunHold {
  return 'isRun' in hold
}

/** An entry in the outbox, with the usage record written with it. */
export type PendingEntry = { readonly entry: LedgerEntry; readonly usage?: UsageRecord }

/** Open holds of one organization: more than any plan's concurrency, and few enough for one document. */
export const MAX_OPEN_HOLDS = 2_000
/**
 * Limit of entries in the outbox. Above it, no new hold or credit is accepted. Ending the open holds is still possible.
 */
export const MAX_PENDING_ENTRIES = 4_000

export function emptyWallet(organizationId: string): Wallet {
  return { _id: organizationId, revision: 0, available: 0, held: 0, sequence: 0, holds: {}, spending: {}, outbox: [] }
}

/** Returns the balance in nano-USD: the available and the held amount. */
export function walletBalance({ available, held }: Pick<Wallet, 'available' | 'held'>): number {
  return available + held
}

/** Returns the sequence number of the last entry up to which all entries are copied. */
export function lastCopied({ sequence, outbox }: Pick<Wallet, 'sequence' | 'outbox'>): number {
  const [waiting] = outbox
  return waiting ? waiting.entry.sequence - 1 : sequence
}

/** Returns the wallet without the entries up to `sequence`, which are copied. */
export function withoutCopied(wallet: Wallet, sequence: number): Wallet {
  const { outbox } = wallet
  if (outbox.length === 0 || outbox[0]!.entry.sequence > sequence) return wallet
  return { ...wallet, outbox: outbox.filter(({ entry }) => entry.sequence > sequence) }
}

/** Returns the id of an organization's wallet: IDs are unique per type. */
export function walletId(organizationId: string): string {
  return organizationId.replace(/^org_/, 'wal_')
}

/** Returns the organization of a wallet's id; null: the id is not of a wallet. */
export function organizationOfWallet(id: string): string | null {
  return id.startsWith('wal_') ? id.replace('wal_', 'org_') : null
}

/** Returns the pages of a month of UTC, such as `2026-11`. */
export function pagesIn(ocr: PageCount | undefined, month: string): number {
  return ocr?.month === month ? ocr.pages : 0
}

/** Returns the UTC month, such as `2026-11`. */
export function monthOf(at: Date): string {
  return at.toISOString().slice(0, 7)
}
