import { toStored } from './money.ts'

/**
 * `wallet` is what an organization may still spend, `held` what its open holds reserve; the two make its balance. `funding` is where its
 * credit comes from, `revenue` what its calls have cost, `absorbed` the part of that cost which the service bears itself.
 */
export const ACCOUNTS = ['wallet', 'held', 'revenue', 'funding', 'absorbed'] as const
export type Account = (typeof ACCOUNTS)[number]

/** Changes in nano-USD, as documents hold them; an account that is not named does not change. They sum to zero. */
export type Postings = { readonly [account in Account]?: number }

export type EntryKind = 'top_up' | 'adjustment' | 'hold' | 'settle' | 'void' | 'expire'

/** A movement that is about to be posted. */
export type NewEntry = {
  readonly _id: string
  readonly kind: EntryKind
  readonly postings: Postings
  /** The operator's reference, or the id of the hold. */
  readonly reference: string
  /** Of a call that is a step of a run: the id of the run's hold, out of which its own is taken. */
  readonly runHoldId?: string
  readonly at: Date
}

/** One movement of the ledger, never changed. */
export type LedgerEntry = NewEntry & {
  readonly organizationId: string
  /** 1 for the organization's first entry, without gaps. */
  readonly sequence: number
  /** The organization's balance after it. */
  readonly balance: number
}

/** Credit that comes, or goes when the amount is negative. */
export function creditPostings(amount: bigint): Postings {
  return { funding: toStored(-amount), wallet: toStored(amount) }
}

/** An amount that is reserved. */
export function holdPostings(amount: bigint): Postings {
  return { wallet: toStored(-amount), held: toStored(amount) }
}

/**
 * The end of a hold: `charged` leaves it, the rest returns to the wallet. What the call cost beyond that is revenue as well, and borne by
 * the service.
 */
export function endPostings(held: bigint, charged: bigint, absorbed: bigint): Postings {
  const freed = { held: toStored(-held), wallet: toStored(held - charged) }
  return charged + absorbed === 0n ? freed : { ...freed, revenue: toStored(charged + absorbed), absorbed: toStored(-absorbed) }
}

/** Change of what the organization owns. */
export function balanceChange(postings: Postings): number {
  return (postings.wallet ?? 0) + (postings.held ?? 0)
}
