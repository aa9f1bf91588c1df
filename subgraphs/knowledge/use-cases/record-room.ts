import { LRUCache } from 'lru-cache'
import { KisError } from '../../common/errors.ts'
import type { Clock } from '../../common/process/clock.ts'
import type { KnowledgeStore } from '../ports/knowledge-store.ts'

/**
 * Records of an organization. Quotas of bytes and vectors do not hold tiny files, and documents that failed. An
 * organization with as many is better served by several.
 */
const MOST_RECORDS = { files: 1_000_000, documents: 1_000_000 }
/** The number of collections of one organization. Each has its own tables in the embedded index. */
export const MAX_COLLECTIONS = 1_000
type Kind = keyof typeof MOST_RECORDS

/** A count of a million records takes about 100 ms, so records are counted anew after this many more, ... */
const RECOUNT_AFTER = 1_000
/** ... or, when there is no room left, after this time: something may have been deleted. */
const RECOUNT_MS = 5_000
/** Organizations whose counts are kept. */
const MAX_CACHED = 10_000

interface Count {
  readonly counted: number
  readonly atMs: number
  added: number
}

/**
 * Bounds how many files and documents an organization has. Each process counts for itself, so that several processes
 * together may exceed the bound by 1,000 each.
 */
export class RecordRoom {
  readonly #store: KnowledgeStore
  readonly #clock: Clock
  readonly #most: Readonly<Record<Kind, number>>
  readonly #counts = new LRUCache<string, Promise<Count>>({ max: MAX_CACHED })

  constructor(store: KnowledgeStore, clock: Clock, most: Readonly<Record<Kind, number>> = MOST_RECORDS) {
    this.#store = store
    this.#clock = clock
    this.#most = most
  }

  /**
   * Takes room for one more record.
   * @throws {KisError} `storage_quota_exceeded` if the organization has the most records of the kind.
   */
  async reserve(kind: Kind, organizationId: string): Promise<void> {
    const most = this.#most[kind]
    const key = `${kind} ${organizationId}`
    let count = await this.#counts.get(key)
    const isFull = count !== undefined && count.counted + count.added >= most
    if (!count || count.added >= RECOUNT_AFTER || (isFull && this.#nowMs() - count.atMs >= RECOUNT_MS)) {
      const counting = this.#count(kind, organizationId)
      this.#counts.set(key, counting)
      counting.catch(() => this.#counts.delete(key))
      count = await counting
    }
    if (count.counted + count.added >= most)
      throw new KisError('storage_quota_exceeded', `An organization has at most ${most} ${kind}. Delete ${kind} first.`)
    count.added++
  }

  async #count(kind: Kind, organizationId: string): Promise<Count> {
    const atMs = this.#nowMs()
    return { counted: await this.#read(kind, organizationId), atMs, added: 0 }
  }

  async #read(kind: Kind, organizationId: string): Promise<number> {
    const { files, documents, collections } = this.#store
    if (kind === 'files') return files.countDocuments({ organizationId })
    let counted = 0
    for (const { _id: collectionId } of await collections.find({ organizationId, listed: true }, { limit: MAX_COLLECTIONS }))
      counted += await documents.countDocuments({ collectionId, listed: true })
    return counted
  }

  #nowMs(): number {
    return this.#clock.now().getTime()
  }
}
