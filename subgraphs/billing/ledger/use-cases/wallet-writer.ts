import { LRUCache } from 'lru-cache'
import { NotFound, ServiceUnavailable } from '../../../common/errors.ts'
import type { Collections } from '../../use-cases/tables.ts'
import type { LedgerEntry } from '../domain/ledger.ts'
import type { Wallet } from '../domain/wallet.ts'
import { WalletDraft } from '../domain/wallet-draft.ts'
import type { OutboxPump } from './outbox-pump.ts'

/** Decisions of one write. A batch looks up as many entries, which the SQLite adapter then reads without a thread. */
const MAX_BATCH = 64
/** Decisions of one organization that wait for a write; at a hundred writes a second the last one waits for less than a second. */
const MAX_WAITING = 5_000
/** Wallets that are remembered between batches where nobody else writes them; a busy one is some 100 KB. */
const MAX_KNOWN = 100
/** Writes that other processes' writes of the same wallet may overtake, one after the other. */
const MAX_ATTEMPTS = 20

/** What a call wants of a wallet. */
interface Decision {
  /** The entry that `decide` asks the draft for. */
  readonly entryId: string | null
  readonly decide: (wallet: WalletDraft) => unknown
  readonly resolve: (result: { readonly value: never; readonly wallet: Wallet }) => void
  readonly reject: (error: unknown) => void
}

type Verdict = { readonly value: unknown } | { readonly error: unknown }

/**
 * The only writer of wallets beside the pump. The calls of one organization that wait while a write is under way are decided one after the
 * other on the wallet in memory, and written together, if the stored wallet is still the one that they were decided on. So each call sees
 * what those before it did, nothing is written by halves, and a busy wallet costs one write for many calls.
 */
export class WalletWriter {
  readonly #collections: Collections
  readonly #pump: OutboxPump
  readonly #waiting = new Map<string, Decision[]>()
  readonly #known: LRUCache<string, Wallet> | null

  /** `isExclusive`: no other process has the store. A wallet is then read once, and after that as it was written. */
  constructor(collections: Collections, pump: OutboxPump, isExclusive: boolean) {
    this.#collections = collections
    this.#pump = pump
    this.#known = isExclusive ? new LRUCache({ max: MAX_KNOWN }) : null
  }

  /**
   * Runs `decide` on the organization's wallet and writes what it changed. It may run again on a newer wallet, and throws before it changes
   * anything. `entryId` is the one entry of the ledger that it may ask for, null: none. Gives the wallet as it was written, or as it was decided on.
   * @throws {NotFound} no such organization. @throws {ServiceUnavailable} whether the change is written is unknown.
   */
  change<T>(
    organizationId: string,
    entryId: string | null,
    decide: (wallet: WalletDraft) => T,
  ): Promise<{ readonly value: T; readonly wallet: Wallet }> {
    return new Promise((resolve, reject) => {
      const decision: Decision = { entryId, decide, resolve, reject }
      const waiting = this.#waiting.get(organizationId)
      if (!waiting) {
        this.#waiting.set(organizationId, [decision])
        void this.#work(organizationId)
      } else if (waiting.length < MAX_WAITING) waiting.push(decision)
      else reject(new ServiceUnavailable('The wallet'))
    })
  }

  /** Writes batch after batch until nobody waits. */
  async #work(organizationId: string): Promise<void> {
    const waiting = this.#waiting.get(organizationId)!
    let wallet: Wallet | null = this.#known?.get(organizationId) ?? null
    while (waiting.length > 0) {
      const batch = waiting.splice(0, MAX_BATCH)
      try {
        wallet = await this.#write(organizationId, batch, wallet)
      } catch (error) {
        wallet = null
        for (const { reject } of batch) reject(error)
      }
    }
    if (wallet) this.#known?.set(organizationId, wallet)
    else this.#known?.delete(organizationId)
    this.#waiting.delete(organizationId)
  }

  /** `known` is the wallet as this process has written it just now; gives it as it is after the batch. */
  async #write(organizationId: string, batch: readonly Decision[], known: Wallet | null): Promise<Wallet> {
    const { wallets } = this.#collections
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const base: Wallet | null = (attempt === 1 ? known : null) ?? (await wallets.findOne({ _id: organizationId }))
      if (!base) throw new NotFound('organization', organizationId, 'organizationId')
      // After the wallet: what the pump took out of its outbox before is in the ledger now.
      const draft = new WalletDraft(base, await this.#copiedEntries(batch))
      const verdicts = batch.map(({ decide }): Verdict => {
        try {
          return { value: decide(draft) }
        } catch (error) {
          return { error }
        }
      })
      const update = draft.update()
      // Without a write nothing shows that another process has not changed the wallet since, except that it was read for this.
      if (!update && base === known) continue
      const written = update ? await wallets.findOneAndUpdate({ _id: organizationId, revision: base.revision }, update) : base
      if (!written) continue
      if (draft.pendingEntries > 0) this.#pump.kick(organizationId, draft.pendingEntries)
      for (const [i, verdict] of verdicts.entries()) {
        if ('error' in verdict) batch[i]!.reject(verdict.error)
        // Of the type that this decision's `resolve` takes: its own `decide` returned it.
        else batch[i]!.resolve({ value: verdict.value as never, wallet: written })
      }
      return written
    }
    throw new ServiceUnavailable('The wallet')
  }

  async #copiedEntries(batch: readonly Decision[]): Promise<ReadonlyMap<string, LedgerEntry>> {
    const ids = [...new Set(batch.flatMap(({ entryId }) => entryId ?? []))]
    if (ids.length === 0) return new Map()
    const entries = await this.#collections.entries.find({ _id: { $in: ids } }, { limit: ids.length })
    return new Map(entries.map((entry) => [entry._id, entry]))
  }
}
