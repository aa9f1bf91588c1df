import type { KeySpending } from './key-spending.ts'
import type { LedgerEntry } from './ledger.ts'
import type { Quantities } from './money.ts'
import type { StoredRateCard } from './rate-card.ts'
import type { Operation, UsageRecord } from './usage.ts'

/**
 * An organization's account. Everything that must hold together is in this one document, so that one write keeps it true: what is
 * available, the open holds that reserve the rest, and the newest entries of the ledger, until the pump has copied them out.
 */
export type Wallet = {
  /** The organization's id. */
  readonly _id: string
  /** Grows with each change but the pump's, which changes nothing that a decision rests on. */
  readonly revision: number
  /** The organization's revision as of the newest rules in force: older principals get no hold. Absent: 0. */
  readonly rules?: number
  /** Nano-USD that a new hold may take; never below zero. */
  readonly available: number
  /** Nano-USD that the open holds reserve. */
  readonly held: number
  /** Sequence of the newest entry. */
  readonly sequence: number
  /** No open hold expires before; may be too early. Absent when no hold was open at the reaper's last look. */
  readonly nextExpiryAt?: Date
  readonly holds: { readonly [id: string]: Hold }
  /** By key: of those that have a limit, or were charged for their own calls or their descendants'. */
  readonly spending: { readonly [apiKeyId: string]: KeySpending }
  /** The end of the ledger, oldest first. */
  readonly outbox: readonly PendingEntry[]
}

/** A reserved amount. */
export type Hold = CallHold | RunHold

type Reserved = {
  readonly state: 'placed' | 'dispatched'
  readonly amount: number
  readonly expiresAt: Date
  readonly apiKeyId: string
  /** The keys that the key descends from. Absent: none. */
  readonly ancestors?: readonly string[]
  readonly requestId: string
  /** The process that the work ends with. Absent: another may go on with it. */
  readonly holder?: string
}

/** Of one call. Its terms never change; the state and the checkpoint do. */
export type CallHold = Reserved & {
  /** The run that the call is a step of: the amount came from its hold, and what the call leaves goes back there. */
  readonly runHoldId?: string
  readonly modelId: string
  readonly operation: Operation
  readonly rateCard: StoredRateCard
  readonly rateCardVersion: string
  /** What an expiry after the dispatch charges. */
  readonly checkpoint: Quantities
}

/** Of a run of several calls, each of which takes its own hold out of this one. `amount` is what no call has taken; nothing is charged to it. */
export type RunHold = Reserved & { readonly isRun: true }

/** The keys in whose spending the hold counts. */
export function spendersOf({ apiKeyId, ancestors = [] }: Pick<Hold, 'apiKeyId' | 'ancestors'>): readonly string[] {
  return [apiKeyId, ...ancestors]
}

/** The run that the hold's call is a step of, if it is one. */
export function runOf(hold: Hold): Pick<CallHold, 'runHoldId'> {
  return isRunHold(hold) || hold.runHoldId === undefined ? {} : { runHoldId: hold.runHoldId }
}

export function isRunHold(hold: Hold): hold is RunHold {
  return 'isRun' in hold
}

/** An entry in the outbox, with the usage record that is written with it. */
export type PendingEntry = { readonly entry: LedgerEntry; readonly usage?: UsageRecord }

/** Open holds of one organization: more than any plan's concurrency, and few enough for one document. */
export const MAX_OPEN_HOLDS = 2_000
/** Entries in the outbox beyond which no new hold or credit is taken; ending the open holds still fits. */
export const MAX_PENDING_ENTRIES = 4_000

export function emptyWallet(organizationId: string): Wallet {
  return { _id: organizationId, revision: 0, available: 0, held: 0, sequence: 0, holds: {}, spending: {}, outbox: [] }
}

export function balanceOf({ available, held }: Pick<Wallet, 'available' | 'held'>): number {
  return available + held
}

/** The last ledger entry that is copied out, with all before it. */
export function copiedOf({ sequence, outbox }: Pick<Wallet, 'sequence' | 'outbox'>): number {
  const [waiting] = outbox
  return waiting ? waiting.entry.sequence - 1 : sequence
}
