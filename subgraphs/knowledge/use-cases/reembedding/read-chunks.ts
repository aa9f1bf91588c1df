import { setImmediate } from 'node:timers/promises'
import { selectInnermost } from '../../domain/chunking/chunk-context.ts'
import { toEmbeddingText } from '../../domain/chunking/chunk-document.ts'
import { buildChunkId, type DocumentRecord } from '../../domain/records.ts'
import { normaliseForEmbedding } from '../../domain/text/text-analysis.ts'
import type { IndexedChunk, IndexedDocument, Terms } from '../../ports/chunk-index.ts'
import { CHUNKS_PER_BLOB, readChunkGroup } from '../chunk-index/stored-chunks.ts'
import type { Deps } from '../deps.ts'

/** A passage without what its model made of it. */
type BareChunk = Omit<IndexedChunk, 'vector' | 'tokenStates' | keyof Terms>

export interface ReembeddingGroup {
  readonly chunks: readonly BareChunk[]
  /** What each passage is embedded and analysed as, in their order. */
  readonly texts: readonly string[]
  /** Those with which they were kept. Null: they are not kept. */
  readonly attributes: IndexedDocument['attributes'] | null
}

/** Reads one group of a ready document's passages as they are in an index. Returns null if not all are there. */
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
  // Documents of early versions have no kept passages.
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
  // Normalising a group takes some milliseconds.
  await setImmediate()
  return { chunks, texts: chunks.map((chunk) => normaliseForEmbedding(toEmbeddingText(chunk))), attributes }
}
