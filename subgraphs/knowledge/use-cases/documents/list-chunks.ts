import { KisError } from '../../../common/errors.ts'
import { type Connection, type PageArguments, readPage, toConnection } from '../../../common/link/connection.ts'
import { buildChunkId, type DocumentRecord } from '../../domain/records.ts'
import type { StoredChunk } from '../../ports/chunk-index.ts'
import { readIndex } from '../chunk-index/index-names.ts'
import type { Deps } from '../deps.ts'

const CHUNK_ID = /^chunk_[0-9a-f]{32}_g\d{1,9}_\d{1,9}$/

/**
 * Lists the chunks of a document in the order of its text. Gives none unless the document is ready.
 * @throws {KisError} `invalid_request` if `after` is not a cursor of the document's live chunks.
 * @throws {KisError} `integer_below_min_value` or `integer_above_max_value` if `first` is out of range.
 */
export async function listChunks(
  deps: Pick<Deps, 'store' | 'index'>,
  document: DocumentRecord,
  args: PageArguments,
): Promise<Connection<StoredChunk>> {
  const { _id, collectionId, status, liveGeneration, chunkCount } = document
  const prefix = buildChunkId(_id, liveGeneration ?? 'g0', 0).slice(0, -1)
  const page = readPage(args, CHUNK_ID)
  if (page.from !== null && !page.from.startsWith(prefix)) {
    const param = page.isBackward ? 'before' : 'after'
    throw new KisError('invalid_request', 'The cursor is of another document, or of an earlier version of this one.', { param })
  }
  const total = status === 'ready' ? chunkCount : 0
  const seen = page.from === null ? null : Number(page.from.slice(prefix.length))
  const ordinals = page.isBackward
    ? range(Math.min(seen ?? total, total) - 1, -1, page.limit).filter((ordinal) => ordinal >= 0)
    : range(seen === null ? 0 : seen + 1, 1, page.limit).filter((ordinal) => ordinal < total)
  const ids = ordinals.map((ordinal) => prefix + ordinal)
  const chunks = await readIndex(deps, collectionId, (name) => deps.index.get(name, ids))
  return toConnection(
    chunks,
    page,
    ({ chunkId }) => chunkId,
    () => total,
  )
}

function range(begin: number, step: number, length: number): readonly number[] {
  return Array.from({ length }, (_, i) => begin + i * step)
}
