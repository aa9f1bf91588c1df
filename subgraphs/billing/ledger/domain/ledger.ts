import { toStored } from './money.ts'

/**
 * The accounts of an organization. `wallet` is what it may still spend, and `held` what its open holds reserve;
 * together they are its balance. `funding` is the source of its credit, `revenue` the cost of its calls, and `absorbed`
 * the part of that cost that the service bears itself.
 */
export const ACCOUNTS = ['wallet', 'held', 'revenue', 'funding', 'absorbed'] as const
type Account = (typeof ACCOUNTS)[number]

/** Changes in nano-USD, as stored. An absent account does not change. The changes sum to zero. */
export type Postings = { readonly [account in Account]?: number }

type EntryKind = 'top_up' | 'adjustment' | 'hold' | 'settle' | 'void' | 'expire'

/** Returns true for the entry that ends a hold. Its reference is the hold's id. */
export function isEnd({ kind }: Pick<NewEntry, 'kind'>): boolean {
  return kind === 'settle' || kind === 'void' || kind === 'expire'
}

/** A movement to be posted. */
export type NewEntry = {
  readonly _id: string
  readonly kind: EntryKind
  readonly postings: Postings
  /** The operator's reference, or the id of the hold. */
  readonly reference: string
  /** For a call that is a step of a run: the id of the run's hold, from which its own hold was taken. */
  readonly runHoldId?: string
  readonly at: Date
}

/** One movement of the ledger. Immutable. */
export type LedgerEntry = NewEntry & {
  readonly organizationId: string
  /** 1 for the organization's first entry, without gaps. */
  readonly sequence: number
  /** The organization's balance after the entry, in nano-USD. */
  readonly balance: number
}

/** Returns the postings that add credit, or remove it if the amount is negative. */
export function creditPostings(amount: bigint): Postings {
  return { funding: toStored(-amount), wallet: toStored(amount) }
}

/** Returns the postings that reserve an amount. */
export function holdPostings(amount: bigint): Postings {
  return { wallet: toStored(-amount), held: toStored(amount) }
}

/**
 * Returns the postings that end a hold: `charged` leaves the hold, and the rest returns to the wallet. Cost beyond the
 * hold is also revenue, and the service bears it.
 */
export function endPostings(held: bigint, charged: bigint, absorbed: bigint): Postings {
  const freed = { held: toStored(-held), wallet: toStored(held - charged) }
  return charged + absorbed === 0n ? freed : { ...freed, revenue: toStored(charged + absorbed), absorbed: toStored(-absorbed) }
}

/** Returns the change of the organization's balance. */
export function balanceChange(postings: Postings): number {
  return (postings.wallet ?? 0) + (postings.held ?? 0)
}
