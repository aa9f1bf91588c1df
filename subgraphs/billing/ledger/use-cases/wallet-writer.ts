import { LRUCache } from 'lru-cache'
import { NotFound, ServiceUnavailable } from '../../../common/errors.ts'
import type { Collections } from '../../use-cases/tables.ts'
import { digestIds, sortedIds } from '../domain/ids.ts'
import type { LedgerEntry } from '../domain/ledger.ts'
import { type Wallet, withoutCopied } from '../domain/wallet.ts'
import { WalletDraft } from '../domain/wallet-draft.ts'
import type { OutboxPump } from './outbox-pump.ts'

/** Decisions in one write. A batch finds as many entries at most, which the SQLite adapter then reads without a thread. */
const MAX_BATCH = 64
/**
 * Decisions of one organization that wait for a write. At a hundred writes a second the last one waits less than a
 * second.
 */
const MAX_WAITING = 5_000
/** Wallets kept between batches. A busy one takes about 100 KB. */
const MAX_KNOWN = 100
/** After a lost race, other processes are taken to write the wallet for this long. It is then read before each batch. */
const SHARED_MS = 10_000
/** Writes of the same wallet in a row that other processes may overtake. */
const MAX_ATTEMPTS = 20

/** An entry of the ledger: one with this id, or the end of this hold. */
type RequestedEntry = { readonly id: string } | { readonly holdId: string }

/** What a call decides on a wallet. */
interface Decision {
  /** What `decide` may ask the draft for. */
  readonly entry: RequestedEntry | null
  readonly decide: (wallet: WalletDraft) => unknown
  readonly resolve: (result: { readonly value: never; readonly wallet: Wallet }) => void
  readonly reject: (error: unknown) => void
}

type Verdict = { readonly value: unknown } | { readonly error: unknown }

/**
 * The only writer of wallets besides the pump and the import of spend limits. Calls of one organization that wait during
 * a write are then decided in turn on the wallet in memory, and written together, if the stored wallet has not changed
 * meanwhile. So each call sees the effects of those before it, a write is all or nothing, and a busy wallet costs one
 * write for many calls.
 */
export class WalletWriter {
  readonly #collections: Collections
  readonly #pump: OutboxPump
  readonly #waiting = new Map<string, Decision[]>()
  /** As this process wrote them last. Another process may have written them since, which the next write notices. */
  readonly #known = new LRUCache<string, Wallet>({ max: MAX_KNOWN })
  /** Wallets that other processes write, too. */
  readonly #shared = new LRUCache<string, true>({ max: MAX_KNOWN, ttl: SHARED_MS })

  constructor(collections: Collections, pump: OutboxPump) {
    this.#collections = collections
    this.#pump = pump
  }

  /**
   * Runs `decide` on the organization's wallet and writes the changes. `decide` may run again on a newer wallet, and
   * must throw before it changes anything. `entry` is the only one of the ledger that it may ask for; null: none. Gives
   * the wallet as written, or as decided on.
   * @throws {NotFound} there is no such organization
   * @throws {ServiceUnavailable} too many calls wait, or the outcome of the write is unknown
   */
  change<T>(
    organizationId: string,
    entry: RequestedEntry | null,
    decide: (wallet: WalletDraft) => T,
  ): Promise<{ readonly value: T; readonly wallet: Wallet }> {
    return new Promise((resolve, reject) => {
      const decision: Decision = { entry, decide, resolve, reject }
      const waiting = this.#waiting.get(organizationId)
      if (!waiting) {
        this.#waiting.set(organizationId, [decision])
        void this.#work(organizationId)
      } else if (waiting.length < MAX_WAITING) waiting.push(decision)
      else reject(new ServiceUnavailable('The wallet'))
    })
  }

  /** Writes batch after batch until no call waits. */
  async #work(organizationId: string): Promise<void> {
    const waiting = this.#waiting.get(organizationId)!
    let wallet: Wallet | null = this.#known.get(organizationId) ?? null
    while (waiting.length > 0) {
      const batch = waiting.splice(0, MAX_BATCH)
      try {
        wallet = await this.#write(organizationId, batch, wallet)
      } catch (error) {
        wallet = null
        for (const { reject } of batch) reject(error)
      }
    }
    if (wallet && !this.#shared.has(organizationId)) this.#known.set(organizationId, wallet)
    else this.#known.delete(organizationId)
    this.#waiting.delete(organizationId)
  }

  /** `known` is the wallet that this process has just written. Gives the wallet after the batch. */
  async #write(organizationId: string, batch: readonly Decision[], known: Wallet | null): Promise<Wallet> {
    const { wallets } = this.#collections
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const stored: Wallet | null = (attempt === 1 ? known : null) ?? (await wallets.findOne({ _id: organizationId }))
      if (!stored) throw new NotFound('organization', organizationId, 'organizationId')
      const base = withoutCopied(stored, this.#pump.copiedThrough(organizationId))
      // After the wallet: what the pump has removed from its outbox is in the ledger by now.
      const draft = new WalletDraft(base, await this.#copiedEntries(base, batch))
      const verdicts = batch.map(({ decide }): Verdict => {
        try {
          return { value: decide(draft) }
        } catch (error) {
          return { error }
        }
      })
      const update = draft.update()
      // Without a write, only a fresh read shows that no other process has changed the wallet.
      if (!update && stored === known) continue
      if (update && !(await wallets.updateOne({ _id: organizationId, revision: base.revision }, update))) {
        this.#shared.set(organizationId, true)
        continue
      }
      const written = update ? draft.after() : base
      if (draft.pendingEntries > 0) this.#pump.kickFor(organizationId, draft.pendingEntries)
      for (const [i, verdict] of verdicts.entries()) {
        if ('error' in verdict) batch[i]!.reject(verdict.error)
        // Of the type that this decision's `resolve` takes: its own `decide` returned it.
        else batch[i]!.resolve({ value: verdict.value as never, wallet: written })
      }
      return written
    }
    throw new ServiceUnavailable('The wallet')
  }

  async #copiedEntries({ _id: organizationId, holds }: Wallet, batch: readonly Decision[]): Promise<readonly LedgerEntry[]> {
    const requested = batch.flatMap(({ entry }) => {
      if (!entry) return []
      if ('id' in entry) return [[entry.id]]
      // An open hold has no end.
      return entry.holdId in holds ? [] : [[sortedIds(organizationId, entry.holdId).entry, digestIds(organizationId, entry.holdId).entry]]
    })
    if (requested.length === 0) return []
    // A hold has one end.
    return this.#collections.entries.find({ _id: { $in: [...new Set(requested.flat())] } }, { limit: requested.length })
  }
}
