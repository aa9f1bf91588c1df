import { KisError } from '../../../common/errors.ts'
import { type Connection, type PageArguments, readPage, toConnection } from '../../../common/link/connection.ts'
import {
  buildChunkId,
  type DocumentRecord,
  findReadSoFar,
  generationName,
  type ReadSoFar,
  readableGeneration,
} from '../../domain/records.ts'
import type { StoredChunk } from '../../ports/chunk-index.ts'
import { readIndex } from '../chunk-index/index-names.ts'
import { listStoredChunks } from '../chunk-index/stored-chunks.ts'
import type { Deps } from '../deps.ts'

const CHUNK_ID = /^chunk_[0-9a-f]{32}_g\d{1,9}_\d{1,9}$/

/**
 * Lists the chunks of a document in the order of its text: those of the live version. Without one, those that are
 * embedded so far, or were before the ingestion failed.
 * @throws {KisError} `invalid_request` if `after` is not a cursor of the document's chunks.
 * @throws {KisError} `integer_below_min_value` or `integer_above_max_value` if `first` is out of range.
 */
export async function listChunks(
  deps: Pick<Deps, 'store' | 'index' | 'blobs'>,
  document: DocumentRecord,
  args: PageArguments,
): Promise<Connection<StoredChunk>> {
  const read = findReadSoFar(document)
  const prefix = buildChunkId(document._id, readableGeneration(document) ?? 'g0', 0).slice(0, -1)
  const page = readPage(args, CHUNK_ID)
  if (page.from !== null && !page.from.startsWith(prefix)) {
    const param = page.isBackward ? 'before' : 'after'
    throw new KisError('invalid_request', 'The cursor is of another document, or of an earlier version of this one.', { param })
  }
  const total = read ? read.chunks : document.status === 'ready' ? document.chunkCount : 0
  const seen = page.from === null ? null : Number(page.from.slice(prefix.length))
  const ordinals = page.isBackward
    ? range(Math.min(seen ?? total, total) - 1, -1, page.limit).filter((ordinal) => ordinal >= 0)
    : range(seen === null ? 0 : seen + 1, 1, page.limit).filter((ordinal) => ordinal < total)
  const chunks = read ? await listRead(deps, document, read, ordinals) : await listLive(deps, document, prefix, ordinals)
  return toConnection(
    chunks,
    page,
    ({ chunkId }) => chunkId,
    () => total,
  )
}

function listLive(
  deps: Pick<Deps, 'store' | 'index'>,
  { collectionId }: DocumentRecord,
  prefix: string,
  ordinals: readonly number[],
): Promise<readonly StoredChunk[]> {
  const ids = ordinals.map((ordinal) => prefix + ordinal)
  return readIndex(deps, collectionId, (name) => deps.index.get(name, ids))
}

/** The index has nothing of a document that has failed; its passages are kept beside it. */
async function listRead(
  deps: Pick<Deps, 'blobs'>,
  { _id: documentId, organizationId, collectionId }: DocumentRecord,
  { generation: number, indexName }: ReadSoFar,
  ordinals: readonly number[],
): Promise<readonly StoredChunk[]> {
  if (ordinals.length === 0) return []
  const generation = generationName(number)
  const [from, last] = [ordinals[0]!, ordinals.at(-1)!].sort((a, b) => a - b) as [number, number]
  const stored = await listStoredChunks(deps, { documentId, generation, collectionId: indexName }, from, last + 1)
  const chunks = stored.map(({ vector: _, tokenStates: __, context: ___, ...chunk }) => ({
    ...chunk,
    organizationId,
    collectionId,
    documentId,
    generation,
  }))
  return ordinals[0] === from ? chunks : chunks.toReversed()
}

function range(start: number, step: number, length: number): readonly number[] {
  return Array.from({ length }, (_, i) => start + i * step)
}
