import { damageSeenAtStart, readEnds } from '../../../common/adapters/sqlite/damage-at-start.ts'
import { Connection, orFailure } from '../../../common/adapters/sqlite/database.ts'
import { Moved, serveWorker, workerInput } from '../../../common/process/worker-rpc.ts'
import { BlobDamaged, type BlobEntry } from '../../ports/blob-store.ts'
import { PIECE_BYTES } from './blob-file.ts'

/** The thread that reads the blobs of one file. */

const { file } = workerInput<{ readonly file: string }>()
const connection = new Connection(file, { readOnly: true })

/**
 * One statement, so that all rows belong to the same state of the file. A blob without pieces in the range gives one
 * row without bytes.
 */
const SELECT = `
  SELECT size, position, bytes FROM blob LEFT JOIN piece ON piece.blob = blob.number AND position BETWEEN ? AND ?
  WHERE key = ? ORDER BY position`
type Row = readonly [size: number, position: number | null, bytes: Uint8Array | null]

function read(key: string, offset: number, length: number): Uint8Array<ArrayBuffer> | null {
  const first = Math.floor(offset / PIECE_BYTES)
  const last = Math.floor((offset + length - 1) / PIECE_BYTES)
  const rows = connection.prepare(SELECT).all<Row>(first, last, key)
  const [found] = rows
  if (!found) return null
  const [size] = found
  const bytes = new Uint8Array(Math.max(0, Math.min(length, size - offset)))
  let filled = 0
  for (const [, position, piece] of rows) {
    if (position === null || piece === null) continue
    const from = position * PIECE_BYTES - offset
    const part = piece.subarray(Math.max(0, -from), bytes.length - from)
    bytes.set(part, Math.max(0, from))
    filled += part.length
  }
  if (filled !== bytes.length) throw new BlobDamaged(key)
  return bytes
}

serveWorker({
  get(key: string, offset: number, length: number) {
    const bytes = orFailure(() => read(key, offset, length))
    return bytes && new Moved(bytes, [bytes.buffer])
  },

  list: (after: string, limit: number) =>
    orFailure(() => {
      const rows = connection.prepare('SELECT key, size FROM blob WHERE key > ? ORDER BY key LIMIT ?').all<[string, number]>(after, limit)
      return rows.map(([key, sizeBytes]): BlobEntry => ({ key, sizeBytes }))
    }),

  damageSeenAtStart: () => orFailure(() => damageSeenAtStart(connection.database, file)),

  readEnds: () => orFailure(() => readEnds(connection.database)),

  close() {
    connection[Symbol.dispose]()
  },
})
