import { NotFound } from '../../../common/errors.ts'
import { buildChunkId, type CollectionRecord, type DocumentRecord } from '../../domain/records.ts'
import { isJunk } from '../../domain/search/prose.ts'
import type { StoredChunk } from '../../ports/chunk-index.ts'
import { readIndex } from '../chunk-index/index-names.ts'
import type { Deps } from '../deps.ts'

/** Documents that passages are picked from, newest first: one page of an index. */
const MAX_DOCUMENTS = 1_000
/** Passages that are read for each that is wanted: some are contents, labels and the like. */
const READ_FOR_EACH = 5
/** A shorter passage is a heading. */
const MIN_CHARACTERS = 40

export interface PickedChunk {
  readonly chunk: StoredChunk
  readonly document: DocumentRecord
}

/**
 * Picks passages of a collection's ready documents at random, as evenly from each document as it can. Without
 * `documentIds` these are the newest 1,000.
 * @throws {NotFound} if the collection has no such document.
 */
export async function pickRandomChunks(
  { store, index }: Pick<Deps, 'store' | 'index'>,
  collection: CollectionRecord,
  documentIds: readonly string[] | null,
  count: number,
): Promise<readonly PickedChunk[]> {
  const documents = await findDocuments({ store }, collection._id, documentIds)
  const ready = documents.filter(({ status, liveGeneration, chunkCount }) => status === 'ready' && liveGeneration && chunkCount > 0)
  const ids = pickChunks(shuffled(ready), count * READ_FOR_EACH)
  const chunks = new Map(
    (await readIndex({ store }, collection._id, (name) => index.get(name, [...ids.keys()]))).map((chunk) => [chunk.chunkId, chunk]),
  )
  return [...ids]
    .flatMap(([id, document]) => {
      const chunk = chunks.get(id)
      return chunk && chunk.text.length >= MIN_CHARACTERS && !isJunk(chunk.text) ? [{ chunk, document }] : []
    })
    .slice(0, count)
}

async function findDocuments(
  { store }: Pick<Deps, 'store'>,
  collectionId: string,
  documentIds: readonly string[] | null,
): Promise<readonly DocumentRecord[]> {
  if (documentIds === null)
    return store.documents.find({ collectionId, listed: true, status: 'ready' }, { sort: { _id: -1 }, limit: MAX_DOCUMENTS })
  const ids = [...new Set(documentIds)]
  const found = await store.documents.find({ _id: { $in: ids }, collectionId, listed: true }, { limit: ids.length })
  const missing = ids.find((id) => !found.some(({ _id }) => _id === id))
  if (missing !== undefined) throw new NotFound('document', missing, 'input.documentIds')
  return found
}

/** Ids of chunks with their documents: one of each document, then a second one, and so on. */
function pickChunks(documents: readonly DocumentRecord[], most: number): ReadonlyMap<string, DocumentRecord> {
  const picked = new Map<string, DocumentRecord>()
  const left = documents.map((document) => ({ document, ordinals: shuffled(sample(document.chunkCount, most)) }))
  for (let round = 0; round < most && picked.size < most; round++) {
    for (const { document, ordinals } of left) {
      const ordinal = ordinals[round]
      if (ordinal !== undefined && picked.size < most) picked.set(buildChunkId(document._id, document.liveGeneration!, ordinal), document)
    }
  }
  return picked
}

/** At most `most` numbers below `count`, spread over all of them with a random start. */
function sample(count: number, most: number): readonly number[] {
  const step = Math.max(1, Math.floor(count / most))
  const start = Math.floor(Math.random() * step)
  return Array.from({ length: Math.min(count, most) }, (_, i) => start + i * step).filter((ordinal) => ordinal < count)
}

function shuffled<T>(items: readonly T[]): readonly T[] {
  const keyed = items.map((item) => ({ item, key: Math.random() }))
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item)
}
