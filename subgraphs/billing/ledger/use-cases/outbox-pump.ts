import { LRUCache } from 'lru-cache'
import { Followers } from '../../../common/events/followers.ts'
import { Outboxes } from '../../../common/events/outboxes.ts'
import type { Log } from '../../../common/process/log.ts'
import type { Collections } from '../../use-cases/tables.ts'
import { lastCopied } from '../domain/wallet.ts'
import { pumpOutbox } from './pump-outbox.ts'

/** Wallets that a start checks together. */
const RESUME_PAGE_WALLETS = 100

/**
 * How long entries may wait for others. The entries of a call are then mostly copied together, and not between the
 * writes that its caller waits for.
 */
const WAIT_MS = 50
/** This many entries do not wait: every write of the wallet writes them, too. About 20 KB. */
const MANY_ENTRIES = 32

/** Wallets of which the pump remembers how far it has copied: as many as the writer keeps. */
const MAX_REMEMBERED = 100

/** Copies the entries of wallets to the ledger and the usage records. */
export class OutboxPump extends Outboxes {
  readonly #collections: Collections
  /** By organization, for entries that wait for others. */
  readonly #timers = new Map<string, NodeJS.Timeout>()
  /** Followers are told after each run of their organization. */
  readonly followers = new Followers(async (positions) => {
    const ids = [...positions.keys()]
    const wallets = await this.#collections.wallets.find({ _id: { $in: ids } }, { limit: ids.length })
    return wallets.filter((wallet) => lastCopied(wallet) > positions.get(wallet._id)!).map(({ _id }) => _id)
  })
  /** By organization, since when entries of this process wait. */
  readonly #since = new Map<string, number>()
  /** By organization. */
  readonly #copied = new LRUCache<string, number>({ max: MAX_REMEMBERED })

  constructor(collections: Collections, log: Log) {
    super(log)
    this.#collections = collections
  }

  /** Copies out soon; `entries` are in the outbox. */
  kickFor(organizationId: string, entries: number): void {
    if (!this.#since.has(organizationId)) this.#since.set(organizationId, performance.now())
    const run = () => this.kick(organizationId)
    if (entries >= MANY_ENTRIES) run()
    else if (!this.#timers.has(organizationId)) this.#timers.set(organizationId, setTimeout(run, WAIT_MS))
  }

  /** The sequence number of the last entry that this process knows to be copied out; 0: it knows of none. */
  copiedThrough(organizationId: string): number {
    return this.#copied.get(organizationId) ?? 0
  }

  /** The wallets whose entries wait, and for how long the oldest has. A wallet that cannot be copied waits on. */
  get waiting(): { readonly wallets: number; readonly oldestMs: number } {
    const [oldest] = this.#since.values()
    return { wallets: this.#since.size, oldestMs: oldest === undefined ? 0 : performance.now() - oldest }
  }

  /** Continues with what an earlier process left in outboxes. */
  async resume(signal: AbortSignal): Promise<void> {
    let after = ''
    while (!signal.aborted) {
      const wallets = await this.#collections.wallets.find({ _id: { $gt: after } }, { limit: RESUME_PAGE_WALLETS })
      for (const wallet of wallets) if (wallet.outbox.length > 0) await this.drain(wallet._id)
      if (wallets.length < RESUME_PAGE_WALLETS) return
      after = wallets.at(-1)!._id
    }
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    for (const organizationId of [...this.#timers.keys()]) void this.drain(organizationId).catch(() => undefined)
    await super[Symbol.asyncDispose]()
  }

  protected override async copy(organizationId: string): Promise<void> {
    clearTimeout(this.#timers.get(organizationId))
    this.#timers.delete(organizationId)
    try {
      await pumpOutbox(this.#collections, organizationId, (sequence) => this.#copied.set(organizationId, sequence))
      this.#since.delete(organizationId)
    } finally {
      this.followers.notify(organizationId)
    }
  }
}
