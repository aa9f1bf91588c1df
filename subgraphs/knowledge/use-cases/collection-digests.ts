import { LRUCache } from 'lru-cache'
import type { Clock } from '../../common/process/clock.ts'
import { buildDigest, type CollectionDigest } from '../domain/digest.ts'
import type { CollectionRecord } from '../domain/records.ts'
import type { KnowledgeStore } from '../ports/knowledge-store.ts'
import { readUsage } from './count-usage.ts'

/**
 * The number of documents that a digest is built from, newest first. This is one page of an index. A tool's description
 * has no room for more.
 */
const MAX_EXAMINED = 200
/** The number of digests in the cache, about 5 KB each. */
const MAX_CACHED = 1_000
/** A digest is rebuilt after this time, because some changes leave its signs the same. */
const MAX_AGE_MS = 300_000

interface CachedDigest {
  readonly fingerprint: string
  readonly createdMs: number
  readonly digest: CollectionDigest
}

/**
 * Caches the digests of collections. A digest is rebuilt when the collection's number of ready documents, number of
 * chunks or newest ready document changes, and after `MAX_AGE_MS`.
 */
export class CollectionDigests {
  readonly #store: KnowledgeStore
  readonly #clock: Clock
  readonly #cache = new LRUCache<string, CachedDigest>({ max: MAX_CACHED })

  constructor(store: KnowledgeStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** Call it when a document of the collection has changed. */
  evict(collectionId: string): void {
    this.#cache.delete(collectionId)
  }

  /** Returns the digest of a collection's ready documents, at most `MAX_AGE_MS` old. */
  async of({ _id: collectionId, organizationId }: Pick<CollectionRecord, '_id' | 'organizationId'>): Promise<CollectionDigest> {
    const { documents } = this.#store
    const ready = { collectionId, listed: true, status: 'ready' } as const
    const [documentCount, { chunks }, [newest]] = await Promise.all([
      documents.countDocuments(ready),
      readUsage(this.#store, organizationId),
      documents.find(ready, { sort: { _id: -1 }, limit: 1 }),
    ])
    const fingerprint = `${documentCount} ${chunks[collectionId] ?? 0} ${newest?._id}`
    const nowMs = this.#clock.now().getTime()
    const cached = this.#cache.get(collectionId)
    if (cached?.fingerprint === fingerprint && nowMs - cached.createdMs < MAX_AGE_MS) return cached.digest
    const [examined, [oldest]] = await Promise.all([
      documents.find(ready, { sort: { _id: -1 }, limit: MAX_EXAMINED }),
      documents.find(ready, { sort: { _id: 1 }, limit: 1 }),
    ])
    const digest = buildDigest(examined, documentCount, oldest?.createdAt ?? null)
    this.#cache.set(collectionId, { fingerprint, createdMs: nowMs, digest })
    return digest
  }
}
