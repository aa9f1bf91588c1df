import { Connection, orFailure } from '../../../common/adapters/sqlite/database.ts'
import { Moved, serveWorker, workerInput } from '../../../common/process/threads/worker-rpc.ts'
import type { BlobEntry } from '../../ports/blob-store.ts'
import { type ReadRows, readBlob } from './read-blob.ts'

/** The thread that reads the blobs of one file. */

const { file } = workerInput<{ readonly file: string }>()
const connection = new Connection(file, { readOnly: true })

const rowsOf: ReadRows = (text, parameters) => connection.prepare(text).all(...parameters)

serveWorker({
  get(key: string, offset: number, length: number) {
    const bytes = orFailure(() => readBlob(rowsOf, key, offset, length))
    return bytes && new Moved(bytes, [bytes.buffer])
  },

  list: (after: string, limit: number) =>
    orFailure(() => {
      const rows = connection.prepare('SELECT key, size FROM blob WHERE key > ? ORDER BY key LIMIT ?').all<[string, number]>(after, limit)
      return rows.map(([key, sizeBytes]): BlobEntry => ({ key, sizeBytes }))
    }),

  close() {
    connection[Symbol.dispose]()
  },
})
