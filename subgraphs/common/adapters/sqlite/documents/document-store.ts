import { isDeepStrictEqual } from 'node:util'
import { ServiceUnavailable } from '../../../errors.ts'
import type { OwnInstallation } from '../../../identity/installation.ts'
import type { CollectionSpec, DocumentCollection, DocumentStore, StoredDocument } from '../../../ports/document-store.ts'
import { FairPlaces, orTooBusy } from '../../../process/fair-places.ts'
import type { Log } from '../../../process/log.ts'
import { untilAborted } from '../../../process/until-aborted.ts'
import type { Kind } from '../../documents/kinds.ts'
import { checkSpec } from '../../documents/spec.ts'
import { Connection, damaged, FileLock, prepareFile, toStorageFailure } from '../database.ts'
import { COMMITS, FileThread, SCANS, StoreFile } from '../threads.ts'
import { SqliteCollection, type StoreAccess } from './document-collection.ts'
import { DOCUMENT_FILE } from './document-file.ts'
import { migrateFile } from './migrate-file.ts'

const WHAT = 'The document store'
/** Reads that the thread for scans has at once. An organization alone has two, so that the thread has the next one at once. */
const READS_AT_ONCE = 4
/** Reads of one organization that wait, and of the service itself. */
const MAX_WAITING_READS = 1_000
/** Of all files, which share the thread. */
const reads = new FairPlaces(READS_AT_ONCE, MAX_WAITING_READS)
/** A read is a page at most, so it runs although its caller has left. */
const NO_END = new AbortController().signal

export interface SqliteStoreOptions {
  readonly file: string
  /** The installation that the file must belong to. Absent: any. */
  readonly installation?: OwnInstallation
  readonly log: Log
}

export interface SqliteDocumentStoreOptions extends SqliteStoreOptions {
  /** The kinds of its documents, with their migrations. Absent: versions are not checked. */
  readonly kinds?: readonly Kind[]
}

/**
 * Opens the documents of one SQLite file, which is created if needed. One thread does all writes, and commits together
 * those that wait. Reads by key and of short pages run on the event loop.
 * @throws {Error} the file is in use, damaged, of another kind or installation, or of a newer version
 * @throws {Unfit} the storage fails
 */
export async function openSqliteDocumentStore({
  file: path,
  installation,
  kinds,
  log,
}: SqliteDocumentStoreOptions): Promise<DocumentStore> {
  await using opening = new AsyncDisposableStack()
  const lock = opening.use(new FileLock(path))
  prepareFile(path, { kind: DOCUMENT_FILE, lock, ...(installation && { installation }) })
  const file = new StoreFile({ path, what: WHAT, log })
  try {
    if (kinds) await migrateFile(path, kinds, log)
    opening.defer(() => lock.noteClosed())
    const writer = opening.use(new FileThread(COMMITS, new URL('./document-writer.ts', import.meta.url), file))
    await writer.call('ping', [])
    lock.noteOpen()
    opening.defer(() => lock.keepLog())
    const damage = await writer.call<string | null>('damageSeenAtStart', [])
    if (damage !== null) throw damaged(path, damage)
    const reader = opening.use(new FileThread(SCANS, new URL('../row-reader.ts', import.meta.url), file))
    const connection = opening.use(new Connection(path, { readOnly: true }))
    return new SqliteDocumentStore({ writer, reader, connection, file, closing: opening.move() })
  } catch (error) {
    throw file.toProblem(error)
  }
}

interface Parts {
  readonly writer: FileThread
  readonly reader: FileThread
  readonly connection: Connection
  /** Disposes of the parts above and of the lock, in the right order. */
  readonly closing: AsyncDisposableStack
  readonly file: StoreFile
}

class SqliteDocumentStore implements DocumentStore {
  readonly #parts: Parts
  readonly #collections = new Map<string, SqliteCollection<StoredDocument>>()
  /** For each collection, resolves when its table and indexes exist. */
  readonly #made: Promise<void>[] = []

  constructor(parts: Parts) {
    this.#parts = parts
  }

  collection<T extends StoredDocument>(spec: CollectionSpec): DocumentCollection<T> {
    let collection = this.#collections.get(spec.name)
    if (!collection) {
      checkSpec(spec)
      const ready = this.#parts.writer.call<void>('createCollection', [spec])
      // Users of the collection get the error. If nobody uses it yet, the error must not end the process.
      ready.catch((error) => this.#parts.file.log.error({ err: error, collection: spec.name }, 'a collection could not be created'))
      this.#made.push(ready)
      collection = new SqliteCollection(spec, this.#accessAfter(ready))
      this.#collections.set(spec.name, collection)
    }
    if (!isDeepStrictEqual(collection.spec, spec)) throw new TypeError(`${spec.name} was declared with other indexes`)
    // The map holds collections of every type; the caller who declares the collection knows its type.
    return collection as unknown as DocumentCollection<T>
  }

  #accessAfter(ready: Promise<void>): StoreAccess {
    const { writer, reader } = this.#parts
    return {
      ready,
      readNow: ({ text, parameters }) => this.#readNow(text, parameters),
      readAside: async ({ text, parameters }, organizationId) => {
        const why = `Too many reads${organizationId && ' of your organization'} wait.`
        const leave = await reads.take(organizationId, NO_END).catch(orTooBusy(why))
        return reader.call<readonly unknown[][]>('all', [text, parameters]).finally(leave)
      },
      write: (method, ...args) => writer.call(method, args),
    }
  }

  async ping(signal: AbortSignal): Promise<Date> {
    const { file, writer } = this.#parts
    try {
      file.checkDamage()
      this.#readNow('SELECT 1 FROM sqlite_schema', [])
      await untilAborted(Promise.all([...this.#made, writer.call('readEnds', []), writer.call('ping', [])]), signal)
      return new Date()
    } catch (error) {
      throw file.toProblem(error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.closing.disposeAsync()
  }

  #readNow(text: string, parameters: readonly (string | number)[]): readonly unknown[][] {
    const { connection, file } = this.#parts
    if (!connection.database.isOpen) throw new ServiceUnavailable(WHAT)
    try {
      return connection.prepare(text).all(...parameters)
    } catch (error) {
      const failure = toStorageFailure(error)
      throw failure ? file.failed(failure) : error
    }
  }
}
