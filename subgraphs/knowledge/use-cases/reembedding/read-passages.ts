import { setImmediate } from 'node:timers/promises'
import { keepInnermost } from '../../domain/chunking/chunk-context.ts'
import { toEmbeddingText } from '../../domain/chunking/chunk-document.ts'
import { buildChunkId, type DocumentRecord } from '../../domain/records.ts'
import { normaliseForEmbedding } from '../../domain/text/text-analysis.ts'
import type { IndexedChunk, IndexedDocument, Terms } from '../../ports/chunk-index.ts'
import { PASSAGES_PER_BLOB, readKeptGroup } from '../chunk-index/kept-passages.ts'
import type { Deps } from '../deps.ts'

/** A passage without what its model made of it. */
type BarePassage = Omit<IndexedChunk, 'vector' | 'tokenStates' | keyof Terms>

export interface PassageGroup {
  readonly passages: readonly BarePassage[]
  /** What each passage is embedded and analysed as, in their order. */
  readonly texts: readonly string[]
  /** Those with which they were kept. Null: they are not kept. */
  readonly attributes: IndexedDocument['attributes'] | null
}

/** Reads one group of a ready document's passages as they are in an index. Returns null if not all are there. */
export async function readPassages(
  deps: Pick<Deps, 'blobs' | 'index'>,
  { _id: documentId, liveGeneration, chunkCount }: Pick<DocumentRecord, '_id' | 'liveGeneration' | 'chunkCount'>,
  indexName: string,
  group: number,
): Promise<PassageGroup | null> {
  const generation = liveGeneration!
  const from = group * PASSAGES_PER_BLOB
  const count = Math.min(PASSAGES_PER_BLOB, chunkCount - from)
  const kept = await readKeptGroup(deps, { documentId, generation, collectionId: indexName }, group)
  if (kept?.passages.length === count) {
    return toGroup(
      kept.passages.map(({ vector: _, tokenStates: __, ...passage }) => passage),
      kept.attributes,
    )
  }
  // Documents of early versions have no kept passages.
  const ids = Array.from({ length: count }, (_, i) => buildChunkId(documentId, generation, from + i))
  const stored = await deps.index.get(indexName, ids)
  if (stored.length !== count) return null
  const bare = stored.map(({ organizationId: _o, collectionId: _c, documentId: _d, generation: _g, ...passage }) => passage)
  return toGroup(
    bare.map((passage) => ({ ...passage, context: keepInnermost(passage.headingPath) })),
    null,
  )
}

async function toGroup(passages: readonly BarePassage[], attributes: PassageGroup['attributes']): Promise<PassageGroup> {
  // Normalising a group takes some milliseconds.
  await setImmediate()
  return { passages, texts: passages.map((passage) => normaliseForEmbedding(toEmbeddingText(passage))), attributes }
}
