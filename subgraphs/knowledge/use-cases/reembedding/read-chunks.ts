import { setImmediate } from 'node:timers/promises'
import { selectInnermost } from '../../domain/chunking/chunk-context.ts'
import { toEmbeddingText } from '../../domain/chunking/chunk-document.ts'
import { buildChunkId, type DocumentRecord } from '../../domain/records.ts'
import { normaliseForEmbedding } from '../../domain/text/text-analysis.ts'
import type { IndexedChunk, IndexedDocument, Terms } from '../../ports/chunk-index.ts'
import { CHUNKS_PER_BLOB, readChunkGroup } from '../chunk-index/stored-chunks.ts'
import type { Deps } from '../deps.ts'

/** A chunk without data that depends on the model. */
type BareChunk = Omit<IndexedChunk, 'vector' | 'tokenStates' | keyof Terms>

/** A group of chunks with their embedding texts. */
export interface ReembeddingGroup {
  readonly chunks: readonly BareChunk[]
  /** The embedding text of each chunk, in order. */
  readonly texts: readonly string[]
  /** The attributes that are stored with the chunks. Null: none are stored. */
  readonly attributes: IndexedDocument['attributes'] | null
}

/** Reads one group of a ready document's chunks as stored for an index. Returns null if some are missing. */
export async function readChunks(
  deps: Pick<Deps, 'blobs' | 'index'>,
  { _id: documentId, liveGeneration, chunkCount }: Pick<DocumentRecord, '_id' | 'liveGeneration' | 'chunkCount'>,
  indexName: string,
  group: number,
): Promise<ReembeddingGroup | null> {
  const generation = liveGeneration!
  const from = group * CHUNKS_PER_BLOB
  const count = Math.min(CHUNKS_PER_BLOB, chunkCount - from)
  const blob = await readChunkGroup(deps, { documentId, generation, collectionId: indexName }, group)
  if (blob?.chunks.length === count) {
    return toGroup(
      blob.chunks.map(({ vector: _, tokenStates: __, ...chunk }) => chunk),
      blob.attributes,
    )
  }
  // Documents of early versions have no stored chunks.
  const ids = Array.from({ length: count }, (_, i) => buildChunkId(documentId, generation, from + i))
  const stored = await deps.index.get(indexName, ids)
  if (stored.length !== count) return null
  const bare = stored.map(({ organizationId: _o, collectionId: _c, documentId: _d, generation: _g, ...chunk }) => chunk)
  return toGroup(
    bare.map((chunk) => ({ ...chunk, context: selectInnermost(chunk.headingPath) })),
    null,
  )
}

async function toGroup(chunks: readonly BareChunk[], attributes: ReembeddingGroup['attributes']): Promise<ReembeddingGroup> {
  // Yield to the event loop, because normalizing a group takes some milliseconds.
  await setImmediate()
  return { chunks, texts: chunks.map((chunk) => normaliseForEmbedding(toEmbeddingText(chunk))), attributes }
}
