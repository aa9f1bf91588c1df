import { LRUCache } from 'lru-cache'
import { Followers } from '../../../common/events/followers.ts'
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

/** A run of the pump, and the next run for those who came meanwhile. */
interface Run {
  current: Promise<void>
  next?: Promise<void>
}

/** Empties outboxes. For each organization one run at a time, and at most one more waits. */
export class OutboxPump implements AsyncDisposable {
  readonly #collections: Collections
  readonly #log: Log
  readonly #runs = new Map<string, Run>()
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
  #closed = false

  constructor(collections: Collections, log: Log) {
    this.#collections = collections
    this.#log = log
  }

  /**
   * Copies out soon; `entries` are in the outbox. A failure loses nothing: they stay there for the next write, read or
   * start.
   */
  kick(organizationId: string, entries: number): void {
    if (this.#closed) return
    if (!this.#since.has(organizationId)) this.#since.set(organizationId, performance.now())
    const run = () => {
      this.drain(organizationId).catch((error) => this.#log.warn({ err: error, organizationId }, 'an outbox could not be copied'))
    }
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

  /** Resolves when everything posted before the call can be read in the ledger and the usage records. */
  drain(organizationId: string): Promise<void> {
    const run = this.#runs.get(organizationId)
    if (!run) return this.#start(organizationId)
    // The current run may have read the wallet before the caller's write.
    run.next ??= run.current.catch(() => undefined).then(() => this.#start(organizationId))
    return run.next
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

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    for (const organizationId of [...this.#timers.keys()]) void this.drain(organizationId).catch(() => undefined)
    await Promise.allSettled([...this.#runs.values()].map((run) => run.next ?? run.current))
  }

  #start(organizationId: string): Promise<void> {
    clearTimeout(this.#timers.get(organizationId))
    this.#timers.delete(organizationId)
    const run: Run = {
      current: this.#copy(organizationId).finally(() => {
        if (!run.next) this.#runs.delete(organizationId)
        this.followers.tell(organizationId)
      }),
    }
    this.#runs.set(organizationId, run)
    return run.current
  }

  async #copy(organizationId: string): Promise<void> {
    await pumpOutbox(this.#collections, organizationId, (sequence) => this.#copied.set(organizationId, sequence))
    this.#since.delete(organizationId)
  }
}
