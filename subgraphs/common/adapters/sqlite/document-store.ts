import { isDeepStrictEqual } from 'node:util'
import { ServiceUnavailable } from '../../errors.ts'
import type { Log } from '../../log.ts'
import type { CollectionSpec, DocumentCollection, DocumentStore, StoredDocument } from '../../ports/document-store.ts'
import type { WorkerClient } from '../../worker-rpc.ts'
import { checkSpec } from '../documents/spec.ts'
import { Connection, lockFile, prepareFile, storageFailureOf } from './database.ts'
import { SqliteCollection, type StoreAccess } from './document-collection.ts'
import { DOCUMENT_FILE } from './document-file.ts'
import { startRowReader, startThread } from './threads.ts'

const WHAT = 'The document store'

/**
 * Opens the documents of one SQLite file, and makes it when it is not there. Writes go through one thread, which commits those that wait
 * together; reads by key run on the calling loop. @throws {Error} the file is in use, of another kind, or of a newer version.
 */
export async function openSqliteDocumentStore({ file, log }: { readonly file: string; readonly log: Log }): Promise<DocumentStore> {
  await using opening = new AsyncDisposableStack()
  opening.use(lockFile(file))
  prepareFile(file, DOCUMENT_FILE)
  const writer = opening.use(startThread(new URL('./document-writer.ts', import.meta.url), { file, what: WHAT, log }))
  await writer.call('ping', [])
  const reader = opening.use(startRowReader({ file, what: WHAT, log }))
  const connection = opening.use(new Connection(file, { readOnly: true }))
  return new SqliteDocumentStore({ writer, reader, connection, closing: opening.move(), log })
}

interface Parts {
  readonly writer: WorkerClient
  readonly reader: WorkerClient
  readonly connection: Connection
  /** Disposes of the parts above and of the lock, in the right order. */
  readonly closing: AsyncDisposableStack
  readonly log: Log
}

class SqliteDocumentStore implements DocumentStore {
  readonly #parts: Parts
  readonly #collections = new Map<string, SqliteCollection<StoredDocument>>()
  /** Of each collection, that its table and indexes are there. */
  readonly #made: Promise<void>[] = []

  constructor(parts: Parts) {
    this.#parts = parts
  }

  collection<T extends StoredDocument>(spec: CollectionSpec): DocumentCollection<T> {
    let collection = this.#collections.get(spec.name)
    if (!collection) {
      checkSpec(spec)
      const ready = this.#parts.writer.call<void>('createCollection', [spec])
      // Whoever uses the collection is told; a collection that nobody uses yet must not end the process.
      ready.catch((error) => this.#parts.log.error({ err: error, collection: spec.name }, 'a collection could not be made'))
      this.#made.push(ready)
      collection = new SqliteCollection(spec, this.#accessAfter(ready))
      this.#collections.set(spec.name, collection)
    }
    if (!isDeepStrictEqual(collection.spec, spec)) throw new TypeError(`${spec.name} was declared with other indexes`)
    return collection as unknown as DocumentCollection<T>
  }

  #accessAfter(ready: Promise<void>): StoreAccess {
    const { writer, reader, connection } = this.#parts
    return {
      ready,
      readNow: ({ text, parameters }) => readNow(connection, text, parameters),
      readAside: ({ text, parameters }) => reader.call('all', [text, parameters]),
      write: (method, ...args) => writer.call(method, args),
    }
  }

  async ping(signal: AbortSignal): Promise<Date> {
    signal.throwIfAborted()
    readNow(this.#parts.connection, 'SELECT 1 FROM sqlite_schema', [])
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      await Promise.race([Promise.all([...this.#made, this.#parts.writer.call('ping', [])]), aborted])
      return new Date()
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.closing.disposeAsync()
  }
}

function readNow(connection: Connection, text: string, parameters: readonly (string | number)[]): readonly unknown[][] {
  if (!connection.database.isOpen) throw new ServiceUnavailable(WHAT)
  try {
    return connection.prepare(text).all(...parameters) as unknown as unknown[][]
  } catch (error) {
    const failure = storageFailureOf(error)
    throw failure ? new ServiceUnavailable(WHAT, { cause: failure }) : error
  }
}
