import type { DocumentRecord } from '../domain/records.ts'
import type { StoredChunk } from '../ports/chunk-index.ts'
import { getFile } from '../use-cases/files/files.ts'
import { findChunk } from '../use-cases/search/find-chunk.ts'
import { searchCollection } from '../use-cases/search/search-collection.ts'
import type { ChunkResolvers, QueryResolvers } from './generated.ts'

export type ChunkOfDocument = StoredChunk & { readonly record: DocumentRecord }

export const searchQueries: QueryResolvers = {
  async searchCollection(_parent, { input, runHoldId, step }, { deps, ...context }) {
    const { limit, mode, filter = null, ...rest } = input
    const inRun = { ...context, ...(runHoldId && { runHoldId }), ...(step && { step }) }
    const { hits, cost } = await searchCollection(deps, inRun, { ...rest, filter, limit: limit ?? 10, mode: mode ?? 'hybrid' })
    return { hits: hits.map(({ chunk, document, ranked }) => ({ ...ranked, chunk: { ...chunk, record: document } })), cost }
  },
}

export const ChunkFields: ChunkResolvers = {
  id: ({ chunkId }) => chunkId,
  document: ({ record }) => record,
  file: ({ record }, _args, { deps }) => getFile(deps, record.organizationId, record.fileId),
  async __resolveReference({ id }, { deps, ...context }) {
    const found = await findChunk(deps, context, id)
    return found && { ...found.chunk, record: found.document }
  },
}
