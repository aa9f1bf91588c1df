import type { DatabaseSync } from 'node:sqlite'
import type { BlobStore } from '../../ports/blob-store.ts'
import { checkKey, checkLimit, checkRange, MAX_BLOB_BYTES } from '../blob-arguments.ts'
import { LIST, type ReadRows, readBlob, toEntries } from './read-blob.ts'

/** Returns the blobs of a file as a connection sees them, such as one in a read transaction. */
export function readOnlyBlobs(database: DatabaseSync): Pick<BlobStore, 'get' | 'list'> {
  const rowsOf: ReadRows = (text, parameters) => {
    const statement = database.prepare(text)
    statement.setReturnArrays(true)
    // Node's types do not reflect `setReturnArrays`.
    return statement.all(...parameters) as unknown as ReturnType<ReadRows>
  }
  return {
    async get(key, range) {
      checkKey(key)
      const { offset, length } = range ?? { offset: 0, length: MAX_BLOB_BYTES }
      if (range) checkRange(offset, length)
      return readBlob(rowsOf, key, offset, length)
    },
    async list(after, limit) {
      checkLimit(limit)
      const statement = database.prepare(LIST)
      statement.setReturnArrays(true)
      return toEntries(statement.all(after, limit) as unknown as Parameters<typeof toEntries>[0])
    },
  }
}
