import { Connection, orFailure } from '../../../common/adapters/sqlite/database.ts'
import { servingFiles } from '../../../common/process/threads/thread-calls.ts'
import type { BlobEntry } from '../../ports/blob-store.ts'
import { type ReadRows, readBlob } from './read-blob.ts'

/** In a thread: reads blobs. */
export const call = servingFiles((file) => {
  const connection = new Connection(file, { readOnly: true })
  const rowsOf: ReadRows = (text, parameters) => connection.prepare(text).all(...parameters)
  return {
    handlers: {
      get: (key: string, offset: number, length: number) => orFailure(() => readBlob(rowsOf, key, offset, length)),

      list: (after: string, limit: number) =>
        orFailure(() => {
          const rows = connection
            .prepare('SELECT key, size FROM blob WHERE key > ? ORDER BY key LIMIT ?')
            .all<[string, number]>(after, limit)
          return rows.map(([key, sizeBytes]): BlobEntry => ({ key, sizeBytes }))
        }),
    },
    close: () => connection[Symbol.dispose](),
  }
})
