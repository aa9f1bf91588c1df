import type { DatabaseSync } from 'node:sqlite'
import type { CollectionSpec, DocumentStore, StoredDocument } from '../../../ports/document-store.ts'
import { SqliteCollection } from './document-collection.ts'
import type { Sql } from './query-sql.ts'

/**
 * Returns the documents of a file as a connection sees them, for example in a read transaction. Nothing can be written.
 * @throws {Error} in any read: the file has no such collection or index, because it is of an earlier version
 */
export function readOnlyDocuments(database: DatabaseSync): Pick<DocumentStore, 'collection'> {
  const read = async ({ text, parameters }: Sql) => {
    const statement = database.prepare(text)
    statement.setReturnArrays(true)
    // Node's types do not follow `setReturnArrays`.
    return statement.all(...parameters) as unknown as readonly unknown[][]
  }
  const write = () => Promise.reject(new TypeError('the documents are read-only here'))
  return { collection: <T extends StoredDocument>(spec: CollectionSpec) => new SqliteCollection<T>(spec, { read, write }) }
}
