import { existsSync, renameSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, FileLock, toOpeningFailure, toStorageFailure } from '../../../common/adapters/sqlite/database.ts'
import type { SqliteStoreOptions } from '../../../common/adapters/sqlite/open-file.ts'
import { checkMark } from '../../../common/adapters/sqlite/store-mark.ts'
import { BULK_WRITES, FileThread, StoreFile } from '../../../common/adapters/sqlite/threads.ts'
import { KisError, ServiceUnavailable } from '../../../common/errors.ts'
import { Corrupted, Unfit } from '../../../common/process/opening.ts'
import { type Caller, FairThreads } from '../../../common/process/threads/thread.ts'
import type { FileCall } from '../../../common/process/threads/thread-calls.ts'
import { untilAborted } from '../../../common/process/until-aborted.ts'
import type {
  ChunkCandidate,
  ChunkIndex,
  ChunkQuery,
  IndexedChunk,
  IndexedCollection,
  IndexedDocument,
  IndexedGeneration,
  RebuildStep,
  StoredChunk,
  ToTerms,
} from '../../ports/chunk-index.ts'
import type { TokenEmbeddings } from '../../ports/inference.ts'
import { packed } from './chunk-index-packing.ts'
import { type ReadChunkTexts, rebuildStep } from './chunk-index-rebuild.ts'
import { reviveRefusal } from './chunk-index-refusal.ts'

/**
 * Maximum search threads, each of which uses one core. They start when searches arrive. An organization uses at most
 * two, so that one long search does not delay its others. The third starts when another organization finds both busy.
 */
const READERS = 3
/**
 * Maximum waiting searches per organization, which take two or three seconds. Callers beyond are refused with a hint to
 * retry.
 */
const MAX_WAITING_SEARCHES = 256
/**
 * Maximum waiting reads of chunks, searches included. The limit is higher, so that a running search can still read its
 * chunks. Reads of ingestions and maintenance are few at a time and always wait.
 */
const MAX_WAITING_READS = 1_024
const MAX_CHUNKS_PER_PUT = 256
const MAX_CANDIDATES = 1_000
const MAX_CHUNKS_PER_GET = 1_000
const MAX_TOKEN_EMBEDDINGS_PER_GET = 100
const MAX_LISTED = 1_000
/** Maximum chunks of one collection with which searches meet their latency targets. */
const LARGE_COLLECTION = 200_000
/** Duration of a step of rebuilding an earlier index. Other writes of the thread run between steps. */
const STEP_MS = 250
const PROGRESS_EVERY_MS = 5_000
const RETRY_AFTER_FAILURE_MS = 5_000
const RETRY_WHEN_REBUILT_MS = 5_000

/** The fair queue's key for collections of no organization. */
const NOBODY = ''

const WHAT = 'The chunk index'

interface SqliteChunkIndexOptions extends SqliteStoreOptions {
  /** True: the installation had this file, and it is missing. It is recreated only on request. */
  readonly isLost?: boolean
  /**
   * True: opens after an index of an earlier version is rebuilt. Default: opens at once, and until then searches and
   * writes fail with `index_rebuilding`.
   */
  readonly rebuildFirst?: boolean
}

/**
 * Opens the chunk index in one SQLite file. One thread writes, others read, and nothing runs on the event loop. It also
 * opens an unreadable file: each call then rejects, and `ping` reports why.
 * @throws {Unfit} the storage fails
 * @throws {Error} the file is in use
 */
export async function openSqliteChunkIndex(options: SqliteChunkIndexOptions): Promise<ChunkIndex> {
  await using opening = new AsyncDisposableStack()
  const lock = opening.use(new FileLock(options.file))
  const file = new StoreFile({ path: options.file, what: WHAT, log: options.log })
  const found = await opened(options, lock, file)
  if (found instanceof Corrupted) options.log.error({ err: found }, 'the chunk index cannot be read')
  return new SqliteChunkIndex(options, { lock, file, opened: found }, opening.move())
}

/** The threads of a readable file. */
interface Threads extends AsyncDisposable {
  readonly writer: FileThread
  readonly readers: Readers
  /** Organization by collection ID. It never changes. */
  readonly organizations: Map<string, string>
  readonly rebuild: EarlierRebuild
}

async function opened(
  { file: path, installation, isLost, rebuildFirst }: SqliteChunkIndexOptions,
  lock: FileLock,
  file: StoreFile,
): Promise<Threads | Corrupted> {
  const { missingLog } = lock
  if (missingLog) return unreadable(`${missingLog} is missing`)
  if (isLost) return unreadable(`${path} is missing`)
  await using opening = new AsyncDisposableStack()
  try {
    const connection = opening.use(new Connection(path, { readOnly: false }))
    // Opens the file here, because SQLite's error code distinguishes a corrupted file from a missing permission. A
    // thread that cannot start passes on only the text.
    connection.database.exec('BEGIN IMMEDIATE; ROLLBACK')
    lock.noteClosed(connection.database)
    opening.defer(() => lock.noteClosed(connection.database))
    const writer = opening.use(new FileThread(BULK_WRITES, new URL('./chunk-index-writer.ts', import.meta.url), file, reviveRefusal))
    // The writer creates the file and its tables, which the readers need.
    await writer.call('ping', [])
    const left = await writer.call<number | null>('rebuildEarlier', [0])
    // A connection uses the write-ahead log from its first read on, and keeps it open until it closes.
    connection.prepare('SELECT 1 FROM sqlite_schema').get()
    if (installation) checkMark(connection.database, path, installation)
    lock.noteOpen()
    const corruption = await writer.call<string | null>('corruptionSeenAtStart', [])
    if (corruption !== null) return unreadable(`${path} is corrupted: ${corruption}`)
    const readers = opening.use(new Readers(file))
    const organizations = await writer.call<Map<string, string>>('organizations', [])
    const rebuild = opening.use(new EarlierRebuild(writer, file, left))
    if (rebuildFirst) await rebuild.ended
    const threads = opening.move()
    return { writer, readers, organizations, rebuild, [Symbol.asyncDispose]: () => threads.disposeAsync() }
  } catch (error) {
    const problem = file.toProblem(error)
    if (problem instanceof Unfit) throw problem
    const { cause = problem } = problem as Error
    const failure = toStorageFailure(cause)
    if (failure && failure.data.kind !== 'damaged') throw toOpeningFailure(path, cause)
    return unreadable(`${path} cannot be read: ${(cause as Error).message}`, cause)
  }
}

/** The reading threads, each with its own connection and cache. */
class Readers implements AsyncDisposable {
  readonly #file: StoreFile
  readonly #threads = new FairThreads('chunk index', { maxThreads: READERS })

  constructor(file: StoreFile) {
    this.#file = file
  }

  async call<T>(method: string, args: readonly unknown[], caller: Caller): Promise<T> {
    try {
      const task: FileCall = { file: this.#file.path, method, args }
      return await this.#threads.call<T>(new URL('./chunk-index-reader.ts', import.meta.url), task, caller)
    } catch (error) {
      throw this.#file.toCallerError(error, reviveRefusal)
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#threads[Symbol.asyncDispose]()
  }
}

/** Rebuilds an index of an earlier version in the background. It resumes the rebuild of an earlier process. */
class EarlierRebuild implements AsyncDisposable {
  /** Number of remaining chunks. Null: none, or no rebuild was needed. */
  left: number | null
  readonly ended: Promise<void>
  readonly #stopping = new AbortController()

  constructor(writer: FileThread, file: StoreFile, left: number | null) {
    this.left = left
    this.ended = left === null ? Promise.resolve() : this.#run(writer, file)
  }

  async #run(writer: FileThread, { path, log }: StoreFile): Promise<void> {
    const { signal } = this.#stopping
    let quietUntil = 0
    while (this.left !== null && !signal.aborted) {
      if (performance.now() >= quietUntil) {
        quietUntil = performance.now() + PROGRESS_EVERY_MS
        log.info({ file: path, left: this.left }, 'the chunk index of an earlier version is being rebuilt')
      }
      try {
        this.left = await writer.call('rebuildEarlier', [STEP_MS])
      } catch {
        // The storage of the index fails. The log and `ping` report it.
        await sleep(RETRY_AFTER_FAILURE_MS, undefined, { signal, ref: false }).catch(() => undefined)
      }
    }
    if (this.left === null) log.info({ file: path }, 'the chunk index is rebuilt')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort()
    await this.ended
  }
}

function unreadable(why: string, cause?: unknown): Corrupted {
  return new Corrupted(`${why.replace(/\.$/, '')}. Run \`kis reindex\`, which fills an empty index from the stores.`, { cause })
}

interface IndexParts {
  readonly lock: FileLock
  readonly file: StoreFile
  readonly opened: Threads | Corrupted
}

class SqliteChunkIndex implements ChunkIndex {
  readonly #options: SqliteChunkIndexOptions
  readonly #lock: FileLock
  readonly #closing: AsyncDisposableStack
  #file: StoreFile
  #opened: Threads | Corrupted
  #replacing: Promise<boolean> | undefined

  constructor(options: SqliteChunkIndexOptions, { lock, file, opened }: IndexParts, closing: AsyncDisposableStack) {
    this.#options = options
    this.#lock = lock
    this.#file = file
    this.#opened = opened
    this.#closing = closing
  }

  get #threads(): Threads {
    if (this.#opened instanceof Corrupted) throw new ServiceUnavailable(WHAT, { why: 'it is corrupted', cause: this.#opened })
    return this.#opened
  }

  /** @throws {KisError} `index_rebuilding`: the index is of an earlier version */
  get #rebuilt(): Threads {
    const { left } = this.#threads.rebuild
    if (left === null) return this.#threads
    const message = `The chunk index is being rebuilt for this version: ${left} chunks are left. Repeat the request later.`
    throw new KisError('index_rebuilding', message, { retryAfterMs: RETRY_WHEN_REBUILT_MS })
  }

  get #writer(): FileThread {
    return this.#threads.writer
  }

  get #readers(): Readers {
    return this.#threads.readers
  }

  /** Returns the caller for the fair queue of a collection. */
  #readerOf(collectionId: string): Caller {
    // Reads of a collection that does not exist are fast.
    return { organizationId: this.#threads.organizations.get(collectionId) ?? NOBODY }
  }

  async createCollection(collection: { organizationId: string; collectionId: string; dimensions: number }): Promise<void> {
    const { writer, organizations } = this.#threads
    await writer.call('createCollection', [collection.organizationId, collection.collectionId, collection.dimensions])
    organizations.set(collection.collectionId, collection.organizationId)
  }

  async dropCollection(collectionId: string): Promise<void> {
    const { writer, organizations } = this.#threads
    await writer.call('dropCollection', [collectionId])
    organizations.delete(collectionId)
  }

  async hasCollection(collectionId: string): Promise<boolean> {
    return this.#readers.call('hasCollection', [collectionId], this.#readerOf(collectionId))
  }

  async put(document: IndexedDocument, chunks: readonly IndexedChunk[]): Promise<void> {
    atMost(chunks.length, MAX_CHUNKS_PER_PUT, 'chunks')
    await this.#rebuilt.writer.call('put', [document, chunks.map(packed)])
  }

  async setAttributes(document: IndexedDocument): Promise<void> {
    await this.#writer.call('setAttributes', [document])
  }

  async ordinals(collectionId: string, documentId: string, generation: string): Promise<readonly number[]> {
    return this.#readers.call('ordinals', [collectionId, documentId, generation], this.#readerOf(collectionId))
  }

  async deleteDocument(collectionId: string, documentId: string, exceptGeneration?: string): Promise<void> {
    await this.#rebuilt.writer.call('deleteDocument', [collectionId, documentId, exceptGeneration ?? null])
  }

  async deleteGeneration(collectionId: string, documentId: string, generation: string): Promise<void> {
    await this.#rebuilt.writer.call('deleteGeneration', [collectionId, documentId, generation])
  }

  async listCollections(after: string, limit: number): Promise<readonly IndexedCollection[]> {
    atMost(limit, MAX_LISTED, 'collections')
    const collections = await this.#writer.call<readonly IndexedCollection[]>('listCollections', [after, limit])
    return collections.map((each) => (each.chunks > LARGE_COLLECTION ? { ...each, isLarge: true } : each))
  }

  async listGenerations(collectionId: string, after: string, limit: number): Promise<readonly IndexedGeneration[]> {
    atMost(limit, MAX_LISTED, 'generations')
    return this.#readers.call('listGenerations', [collectionId, after, limit], this.#readerOf(collectionId))
  }

  async search(query: ChunkQuery, signal: AbortSignal): Promise<readonly ChunkCandidate[]> {
    if (!(query.candidates >= 1 && query.candidates <= MAX_CANDIDATES)) {
      throw new KisError('invalid_request', `A search has 1 to ${MAX_CANDIDATES} candidates, not ${query.candidates}.`)
    }
    const caller = { ...this.#readerOf(query.collectionId), maxWaiting: MAX_WAITING_SEARCHES, signal }
    return this.#rebuilt.readers.call('search', [query], caller)
  }

  async get(collectionId: string, chunkIds: readonly string[]): Promise<readonly StoredChunk[]> {
    atMost(chunkIds.length, MAX_CHUNKS_PER_GET, 'chunk ids')
    return this.#readers.call('get', [collectionId, chunkIds], { ...this.#readerOf(collectionId), maxWaiting: MAX_WAITING_READS })
  }

  async tokenEmbeddings(collectionId: string, chunkIds: readonly string[]): Promise<ReadonlyMap<string, TokenEmbeddings>> {
    atMost(chunkIds.length, MAX_TOKEN_EMBEDDINGS_PER_GET, 'chunk ids')
    return this.#rebuilt.readers.call('tokenStates', [collectionId, chunkIds], {
      ...this.#readerOf(collectionId),
      maxWaiting: MAX_WAITING_READS,
    })
  }

  async rebuild(after: string | null, toTerms: ToTerms, signal: AbortSignal): Promise<RebuildStep> {
    const readChunkTexts: ReadChunkTexts = (collectionId, from, limit) =>
      this.#readers.call('passages', [collectionId, from, limit], { ...this.#readerOf(collectionId), signal })
    return rebuildStep(this.#rebuilt.writer, readChunkTexts, after, toTerms)
  }

  replaceUnreadable(): Promise<boolean> {
    this.#replacing ??= this.#replaceUnreadable().finally(() => {
      this.#replacing = undefined
    })
    return this.#replacing
  }

  async #replaceUnreadable(): Promise<boolean> {
    const { file: path, log } = this.#options
    const before = this.#opened
    if (!(before instanceof Corrupted)) {
      if (!this.#file.corruption) return false
      this.#opened = unreadable(`${path} is being replaced`)
      await before[Symbol.asyncDispose]()
    }
    const aside = setAside(path)
    this.#lock.acceptLoss()
    this.#file = new StoreFile({ path, what: WHAT, log })
    this.#opened = await opened({ ...this.#options, isLost: false }, this.#lock, this.#file)
    if (this.#opened instanceof Corrupted) throw new ServiceUnavailable(WHAT, { cause: this.#opened })
    log.warn({ file: path, aside }, 'an empty chunk index has replaced one that could not be read')
    return true
  }

  /** Does nothing: SQLite erases data with each deletion. */
  async expunge(): Promise<void> {}

  async ping(signal: AbortSignal): Promise<void> {
    if (this.#opened instanceof Corrupted) throw this.#opened
    try {
      if (this.#file.corruption) throw unreadable(`${this.#options.file} is corrupted`)
      const { writer } = this.#opened
      await untilAborted(writer.call('ping', []), signal)
    } catch (error) {
      throw this.#file.toProblem(error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!(this.#opened instanceof Corrupted)) await this.#opened[Symbol.asyncDispose]()
    await this.#closing.disposeAsync()
  }
}

/** Renames the file and its log, because both are needed to read it. Returns the new name. Null: there was no file. */
function setAside(path: string): string | null {
  if (!existsSync(path)) return null
  const aside = `${path}.unreadable-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
  for (const part of ['', '-wal']) if (existsSync(path + part)) renameSync(path + part, aside + part)
  rmSync(`${path}-shm`, { force: true })
  return aside
}

function atMost(count: number, max: number, what: string): void {
  if (count > max) throw new KisError('array_above_max_length', `At most ${max} ${what} at once, not ${count}.`)
}
