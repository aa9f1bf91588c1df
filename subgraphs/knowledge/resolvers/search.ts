import type { DocumentRecord } from '../domain/records.ts'
import type { StoredChunk } from '../ports/chunk-index.ts'
import { readPageBoxes } from '../use-cases/chunk-index/page-boxes.ts'
import { findChunk } from '../use-cases/search/find-chunk.ts'
import { type SearchHit, searchCollection } from '../use-cases/search/search-collection.ts'
import type { ChunkResolvers, QueryResolvers } from './generated.ts'

/** A chunk, with the record of its document. */
export type ChunkOfDocument = StoredChunk & { readonly record: DocumentRecord }

export const searchQueries: QueryResolvers = {
  async searchCollection(_parent, { input, runHoldId, step }, { deps, ...context }) {
    const inRun = { ...context, ...(runHoldId && { runHoldId }), ...(step && { step }) }
    const { hits, groups, rerank, ...result } = await searchCollection(deps, inRun, input)
    return {
      ...result,
      hits: hits.map(toHit),
      groups: groups?.map((group) => ({ document: group.document, hits: group.hits.map(toHit) })),
      rerank: rerank && { model: { id: rerank.modelId }, applied: rerank.applied, error: rerank.error },
    }
  },
}

function toHit({ chunk, document, ranked, highlights, before, after }: SearchHit) {
  const ofDocument = (each: StoredChunk): ChunkOfDocument => ({ ...each, record: document })
  return {
    ...ranked,
    collectionId: document.collectionId,
    chunk: ofDocument(chunk),
    highlights,
    before: before.map(ofDocument),
    after: after.map(ofDocument),
  }
}

export const ChunkFields: ChunkResolvers = {
  id: ({ chunkId }) => chunkId,
  document: ({ record }) => record,
  file: ({ record }, _args, { records }) => records.getFile(record.organizationId, record.fileId),
  pageBoxes: (chunk, _args, { deps }) => readPageBoxes(deps, chunk),
  async __resolveReference({ id }, { deps, ...context }) {
    const found = await findChunk(deps, context, id)
    return found && { ...found.chunk, record: found.document }
  },
}
