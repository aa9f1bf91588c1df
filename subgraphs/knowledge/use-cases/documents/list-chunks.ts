import { type Connection, type PageArguments, readPage, toConnection } from '../../../common/link/connection.ts'
import { buildChunkId, type DocumentRecord } from '../../domain/records.ts'
import type { StoredChunk } from '../../ports/chunk-index.ts'
import type { Deps } from '../deps.ts'

/** Lists the chunks of a document in the order of its text. Gives none unless the document is ready. */
export async function listChunks(
  { index }: Pick<Deps, 'index'>,
  document: DocumentRecord,
  args: PageArguments,
): Promise<Connection<StoredChunk>> {
  const { _id, collectionId, status, liveGeneration, chunkCount } = document
  const prefix = buildChunkId(_id, liveGeneration ?? 'g0', 0).slice(0, -1)
  const page = readPage(args, new RegExp(`^${prefix}\\d{1,9}$`))
  const from = page.after === null ? 0 : Number(page.after.slice(prefix.length)) + 1
  const count = status === 'ready' ? Math.max(0, Math.min(page.limit, chunkCount - from)) : 0
  const chunks = await index.get(
    collectionId,
    Array.from({ length: count }, (_, i) => prefix + (from + i)),
  )
  return toConnection(chunks, page, ({ chunkId }) => chunkId)
}
