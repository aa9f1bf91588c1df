import type { StoredValue, Update } from '../../../common/ports/document-store.ts'
import { type KeySpending, NOTHING_SPENT, type SpendLimit, spendingAfter } from './key-spending.ts'
import { balanceChange, isEnd, type LedgerEntry, type NewEntry } from './ledger.ts'
import type { UsageRecord } from './usage.ts'
import { type Hold, listSpenders, type PageCount, type PendingEntry, pagesIn, type Wallet, walletBalance } from './wallet.ts'

/** A wallet with changes that are not written yet. Several calls may add changes one after the other. */
export class WalletDraft {
  readonly #base: Wallet
  readonly #copied: readonly LedgerEntry[]
  readonly #holds = new Map<string, Hold | null>()
  readonly #spending = new Map<string, KeySpending | null>()
  /** Nano-USD that the open holds of each key and its descendants reserve. Computed at first use. */
  #heldByKey: Map<string, number> | undefined
  readonly #posted: PendingEntry[] = []
  #openHolds: number
  #available: number
  #held: number
  #nextExpiryAt: Date | undefined
  #rules: number
  #ocr: PageCount | undefined

  /**
   * `copied`: the requested ones of those entries that the pump has copied from the wallet's outbox to the ledger.
   */
  constructor(base: Wallet, copied: readonly LedgerEntry[]) {
    this.#base = base
    this.#copied = copied
    this.#openHolds = Object.keys(base.holds).length
    this.#available = base.available
    this.#held = base.held
    this.#nextExpiryAt = base.nextExpiryAt
    this.#rules = base.rules ?? 0
    this.#ocr = base.ocr
  }

  /** The revision of the rules in force. */
  get rules(): number {
    return this.#rules
  }

  /** Sets the revision of the rules. The latest revision wins, whichever change is written last. */
  enforce(revision: number): void {
    this.#rules = Math.max(this.#rules, revision)
  }

  get available(): number {
    return this.#available
  }

  get balance(): number {
    return walletBalance({ available: this.#available, held: this.#held })
  }

  get openHolds(): number {
    return this.#openHolds
  }

  get pendingEntries(): number {
    return this.#base.outbox.length + this.#posted.length
  }

  hold(id: string): Hold | undefined {
    return this.#holds.has(id) ? (this.#holds.get(id) ?? undefined) : this.#base.holds[id]
  }

  /** Returns the open holds. */
  holds(): readonly (readonly [id: string, hold: Hold])[] {
    const ids = new Set([...Object.keys(this.#base.holds), ...this.#holds.keys()])
    return [...ids].flatMap((id) => {
      const hold = this.hold(id)
      return hold ? [[id, hold] as const] : []
    })
  }

  /** Returns an entry of the ledger. The caller must have named its id before (`WalletWriter.change`). */
  entry(id: string): LedgerEntry | undefined {
    return this.#find((entry) => entry._id === id)
  }

  /** Returns the entry that ended a hold. The caller must have named the hold before (`WalletWriter.change`). */
  end(holdId: string): LedgerEntry | undefined {
    return this.#find((entry) => entry.reference === holdId && isEnd(entry))
  }

  /** Searches the requested entries of the ledger, then the new entries, then the wallet's outbox. */
  #find(isIt: (entry: LedgerEntry) => boolean): LedgerEntry | undefined {
    const isPending = ({ entry }: PendingEntry) => isIt(entry)
    return this.#copied.find(isIt) ?? (this.#posted.find(isPending) ?? this.#base.outbox.find(isPending))?.entry
  }

  /** Opens a hold, or changes an open one. */
  putHold(id: string, hold: Hold): void {
    const before = this.hold(id)
    if (!before) this.#openHolds += 1
    this.#moveHeld(hold, hold.amount - (before?.amount ?? 0))
    if (!this.#nextExpiryAt || this.#nextExpiryAt > hold.expiresAt) this.#nextExpiryAt = hold.expiresAt
    this.#holds.set(id, hold)
  }

  dropHold(id: string): void {
    const before = this.hold(id)
    if (before) {
      this.#openHolds -= 1
      this.#moveHeld(before, -before.amount)
    }
    this.#holds.set(id, null)
  }

  spending(apiKeyId: string): KeySpending {
    return (this.#spending.has(apiKeyId) ? this.#spending.get(apiKeyId) : this.#base.spending[apiKeyId]) ?? NOTHING_SPENT
  }

  /** Returns the nano-USD that the open holds of the key and its descendants reserve. */
  heldBy(apiKeyId: string): number {
    if (!this.#heldByKey) {
      this.#heldByKey = new Map()
      for (const [, hold] of this.holds()) this.#moveHeld(hold, hold.amount)
    }
    return this.#heldByKey.get(apiKeyId) ?? 0
  }

  /** Counts the charge of a hold for its key and the key's ancestors. */
  addSpending(hold: Hold, charged: number, at: Date): void {
    if (charged === 0) return
    for (const id of listSpenders(hold)) this.#spending.set(id, spendingAfter(this.spending(id), charged, at))
  }

  /** Returns the pages of a month; 0 for a month before the latest. */
  pages(month: string): number {
    return pagesIn(this.#ocr, month)
  }

  /** Adds or subtracts pages. If the clock was set back, they count in the later month. */
  addPages({ month, pages }: PageCount): void {
    const latest = this.#ocr && this.#ocr.month > month ? this.#ocr.month : month
    if (pages < 0 && latest !== month) return
    this.#ocr = { month: latest, pages: Math.max(0, this.pages(latest) + pages) }
  }

  putSpendLimit(apiKeyId: string, limit: SpendLimit | null): void {
    this.#spending.set(apiKeyId, { ...this.spending(apiKeyId), limit })
  }

  /** Deletes the key's limit and counters. */
  dropSpending(apiKeyId: string): void {
    this.#spending.set(apiKeyId, null)
  }

  /**
   * Adds an entry, and changes the balances by it.
   * @throws {RangeError} the wallet does not have that much: a defect of the caller
   */
  post(entry: NewEntry, usage?: UsageRecord): LedgerEntry {
    const [available, held] = [this.#available + (entry.postings.wallet ?? 0), this.#held + (entry.postings.held ?? 0)]
    if (available < 0 || held < 0) throw new RangeError(`the entry ${entry._id} overdraws the wallet ${this.#base._id}`)
    this.#available = available
    this.#held = held
    const before = this.#posted.at(-1)?.entry ?? { sequence: this.#base.sequence, balance: walletBalance(this.#base) }
    const sequence = before.sequence + 1
    const posted = { ...entry, organizationId: this.#base._id, sequence, balance: before.balance + balanceChange(entry.postings) }
    this.#posted.push(usage ? { entry: posted, usage } : { entry: posted })
    return posted
  }

  /** Sets the next expiry to the earliest of the open holds. */
  recomputeNextExpiry(): void {
    const times = this.holds().map(([, hold]) => hold.expiresAt.getTime())
    this.#nextExpiryAt = times.length > 0 ? new Date(Math.min(...times)) : undefined
  }

  #moveHeld(hold: Hold, change: number): void {
    for (const id of this.#heldByKey ? listSpenders(hold) : []) this.#heldByKey?.set(id, (this.#heldByKey.get(id) ?? 0) + change)
  }

  /** Returns the wallet as `update` leaves it. */
  after(): Wallet {
    const { nextExpiryAt: _before, ...base } = this.#base
    return {
      ...base,
      revision: base.revision + 1,
      available: this.#available,
      held: this.#held,
      sequence: this.#posted.at(-1)?.entry.sequence ?? base.sequence,
      holds: changed(base.holds, this.#holds),
      spending: changed(base.spending, this.#spending),
      outbox: this.#posted.length > 0 ? [...base.outbox, ...this.#posted] : base.outbox,
      ...(this.#nextExpiryAt && { nextExpiryAt: this.#nextExpiryAt }),
      ...(this.#rules !== (base.rules ?? 0) && { rules: this.#rules }),
      ...(this.#ocr && { ocr: this.#ocr }),
    }
  }

  /**
   * Returns the update that turns the stored wallet into this one; null when nothing changed. Valid only for the
   * revision at the start of the draft.
   */
  update(): Update | null {
    const expiryMoved = this.#nextExpiryAt?.getTime() !== this.#base.nextExpiryAt?.getTime()
    const last = this.#posted.at(-1)
    const rulesChanged = this.#rules !== (this.#base.rules ?? 0)
    if (!last && !rulesChanged && this.#holds.size === 0 && this.#spending.size === 0 && !expiryMoved) return null
    const set: Record<string, StoredValue> = { available: this.#available, held: this.#held }
    const unset: Record<string, ''> = {}
    for (const [id, hold] of this.#holds) {
      if (hold) set[`holds.${id}`] = hold
      else if (this.#base.holds[id]) unset[`holds.${id}`] = ''
    }
    for (const [apiKeyId, spending] of this.#spending) {
      if (spending) set[`spending.${apiKeyId}`] = spending
      else if (this.#base.spending[apiKeyId]) unset[`spending.${apiKeyId}`] = ''
    }
    if (this.#nextExpiryAt) set.nextExpiryAt = this.#nextExpiryAt
    else unset.nextExpiryAt = ''
    if (rulesChanged) set.rules = this.#rules
    if (this.#ocr && this.#ocr !== this.#base.ocr) set.ocr = this.#ocr
    if (last) set.sequence = last.entry.sequence
    return { $set: set, $unset: unset, $inc: { revision: 1 }, ...(last && { $push: { outbox: { $each: this.#posted } } }) }
  }
}

/** Applies `changes` to a map. Null removes a value. */
function changed<T>(base: Readonly<Record<string, T>>, changes: ReadonlyMap<string, T | null>): Readonly<Record<string, T>> {
  if (changes.size === 0) return base
  const after = { ...base }
  for (const [id, value] of changes) {
    if (value) after[id] = value
    else delete after[id]
  }
  return after
}
