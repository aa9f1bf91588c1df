import { Connection, orFailure } from '../../../common/adapters/sqlite/database.ts'
import { servingFiles } from '../../../common/process/threads/thread-calls.ts'
import { LIST, type ReadRows, readBlob, toEntries } from './read-blob.ts'

/** Entry point of the thread that reads blobs. */
export const call = servingFiles((file) => {
  const connection = new Connection(file, { readOnly: true })
  const rowsOf: ReadRows = (text, parameters) => connection.prepare(text).all(...parameters)
  return {
    handlers: {
      get: (key: string, offset: number, length: number) => orFailure(() => readBlob(rowsOf, key, offset, length)),

      list: (after: string, limit: number) => orFailure(() => toEntries(connection.prepare(LIST).all<[string, number]>(after, limit))),
    },
    close: () => connection[Symbol.dispose](),
  }
})
