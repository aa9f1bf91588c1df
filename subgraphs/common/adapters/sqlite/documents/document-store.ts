import { isDeepStrictEqual } from 'node:util'
import { ServiceUnavailable } from '../../../errors.ts'
import type { CollectionSpec, DocumentCollection, DocumentStore, StoredDocument } from '../../../ports/document-store.ts'
import { FairSemaphore, orTooBusy } from '../../../process/fair-semaphore.ts'
import { untilAborted } from '../../../process/until-aborted.ts'
import type { Kind } from '../../documents/kinds.ts'
import { checkSpec } from '../../documents/spec.ts'
import { toStorageFailure } from '../database.ts'
import { type OpenedFile, openFile, type SqliteStoreOptions } from '../open-file.ts'
import { COMMITS, FileThread, SCANS } from '../threads.ts'
import { SqliteCollection, type StoreAccess } from './document-collection.ts'
import { migrateFile } from './migrate-file.ts'
import { DOCUMENT_FILE } from './tables.ts'

/** Reads that the thread for scans has at once. An organization alone has two, so that the thread has the next one at once. */
const READS_AT_ONCE = 4
/** Reads of one organization that wait, and of the service itself. */
const MAX_WAITING_READS = 1_000
/** Of all files, which share the thread. */
const reads = new FairSemaphore(READS_AT_ONCE, MAX_WAITING_READS)
/** A read is a page at most, so it runs although its caller has left. */
const NO_END = new AbortController().signal

interface SqliteDocumentStoreOptions extends SqliteStoreOptions {
  /** The kinds of its documents, with their migrations. Absent: versions are not checked. */
  readonly kinds?: readonly Kind[]
}

/**
 * Opens the documents of one SQLite file, which is created if needed. One thread does all writes, and commits together
 * those that wait. Reads by key and of short pages run on the event loop.
 * @throws {Error} the file is in use, damaged, of another kind or installation, or of a newer version
 * @throws {Unfit} the storage fails
 */
export async function openSqliteDocumentStore({ kinds, ...options }: SqliteDocumentStoreOptions): Promise<DocumentStore> {
  const script = new URL('./document-writer.ts', import.meta.url)
  const migrate = async () => kinds && migrateFile(options.file, kinds, options.log)
  return new SqliteDocumentStore(await openFile(options, { kind: DOCUMENT_FILE, thread: COMMITS, script, migrate }))
}

class SqliteDocumentStore implements DocumentStore {
  readonly #opened: OpenedFile
  readonly #reader: FileThread
  readonly #collections = new Map<string, SqliteCollection<StoredDocument>>()
  /** For each collection, resolves when its table and indexes exist. */
  readonly #tablesReady: Promise<void>[] = []

  constructor(opened: OpenedFile) {
    this.#opened = opened
    this.#reader = opened.closing.use(new FileThread(SCANS, new URL('../row-reader.ts', import.meta.url), opened.file))
  }

  collection<T extends StoredDocument>(spec: CollectionSpec): DocumentCollection<T> {
    let collection = this.#collections.get(spec.name)
    if (!collection) {
      checkSpec(spec)
      const ready = this.#opened.writer.call<void>('createCollection', [spec])
      // Users of the collection get the error. If nobody uses it yet, the error must not end the process.
      ready.catch((error) => this.#opened.file.log.error({ err: error, collection: spec.name }, 'a collection could not be created'))
      this.#tablesReady.push(ready)
      collection = new SqliteCollection(spec, this.#accessAfter(ready))
      this.#collections.set(spec.name, collection)
    }
    if (!isDeepStrictEqual(collection.spec, spec)) throw new TypeError(`${spec.name} was declared with other indexes`)
    // The map holds collections of every type; the caller who declares the collection knows its type.
    return collection as unknown as DocumentCollection<T>
  }

  #accessAfter(ready: Promise<void>): StoreAccess {
    return {
      read: async ({ text, parameters }, aside) => {
        await ready
        if (aside === null) return this.#readNow(text, parameters)
        const release = await reads.acquire(aside, NO_END).catch(orTooBusy(`Too many reads${aside && ' of your organization'} wait.`))
        return this.#reader.call<readonly unknown[][]>('all', [text, parameters]).finally(release)
      },
      write: async (method, ...args) => {
        await ready
        return this.#opened.writer.call(method, args)
      },
    }
  }

  async ping(signal: AbortSignal): Promise<Date> {
    const { file, writer } = this.#opened
    try {
      if (file.corruption) throw file.corruption
      this.#readNow('SELECT 1 FROM sqlite_schema', [])
      await untilAborted(Promise.all([...this.#tablesReady, writer.call('ping', [])]), signal)
      return new Date()
    } catch (error) {
      throw file.toProblem(error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.closing.disposeAsync()
  }

  #readNow(text: string, parameters: readonly (string | number)[]): readonly unknown[][] {
    const { connection, file } = this.#opened
    if (!connection.database.isOpen) throw new ServiceUnavailable(file.what)
    try {
      return connection.prepare(text).all(...parameters)
    } catch (error) {
      const failure = toStorageFailure(error)
      throw failure ? file.failed(failure) : error
    }
  }
}
