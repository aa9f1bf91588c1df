import { damaged, FileLock, prepareFile } from '../../../common/adapters/sqlite/database.ts'
import type { SqliteStoreOptions } from '../../../common/adapters/sqlite/documents/document-store.ts'
import { BULK_WRITES, FileThread, SCANS, StoreFile } from '../../../common/adapters/sqlite/threads.ts'
import { untilAborted } from '../../../common/process/until-aborted.ts'
import { BlobDamaged, type BlobEntry, type BlobStore } from '../../ports/blob-store.ts'
import { checkKey, checkLimit, checkRange, checkSize, MAX_BLOB_BYTES } from '../blob-arguments.ts'
import { BLOB_FILE } from './blob-file.ts'

const WHAT = 'The blob store'

/**
 * Opens the blobs of one SQLite file, which is created if needed. Writes and reads have a thread each, so that large
 * ones do not block the event loop.
 * @throws {Error} the file is in use, damaged, of another kind or installation, or of a newer version
 * @throws {Unfit} the storage fails
 */
export async function openSqliteBlobStore({ file: path, installation, log }: SqliteStoreOptions): Promise<BlobStore & AsyncDisposable> {
  await using opening = new AsyncDisposableStack()
  const lock = opening.use(new FileLock(path))
  prepareFile(path, { kind: BLOB_FILE, lock, ...(installation && { installation }) })
  const file = new StoreFile({ path, what: WHAT, log })
  try {
    opening.defer(() => lock.noteClosed())
    const writer = opening.use(new FileThread(BULK_WRITES, new URL('./blob-writer.ts', import.meta.url), file))
    await writer.call('ping', [])
    lock.noteOpen()
    opening.defer(() => lock.keepLog())
    const damage = await writer.call<string | null>('damageSeenAtStart', [])
    if (damage !== null) throw damaged(path, damage)
    const reader = opening.use(new FileThread(SCANS, new URL('./blob-reader.ts', import.meta.url), file))
    return new SqliteBlobStore(file, { writer, reader }, opening.move())
  } catch (error) {
    throw file.toProblem(error)
  }
}

class SqliteBlobStore implements BlobStore, AsyncDisposable {
  readonly #file: StoreFile
  readonly #writer: FileThread
  readonly #reader: FileThread
  readonly #closing: AsyncDisposableStack

  constructor(
    file: StoreFile,
    { writer, reader }: { readonly writer: FileThread; readonly reader: FileThread },
    closing: AsyncDisposableStack,
  ) {
    this.#file = file
    this.#writer = writer
    this.#reader = reader
    this.#closing = closing
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    checkKey(key)
    checkSize(bytes)
    // The thread gets a copy: the caller keeps its bytes, and may change them at once.
    const copy = new Uint8Array(bytes)
    await this.#writer.call('put', [key, copy], [copy.buffer])
  }

  async get(key: string, range?: { readonly offset: number; readonly length: number }): Promise<Uint8Array | null> {
    checkKey(key)
    const { offset, length } = range ?? { offset: 0, length: MAX_BLOB_BYTES }
    if (range) checkRange(offset, length)
    try {
      return await this.#reader.call<Uint8Array | null>('get', [key, offset, length])
    } catch (error) {
      throw error instanceof Error && error.name === 'BlobDamaged' ? new BlobDamaged(key, { cause: error }) : error
    }
  }

  async delete(key: string): Promise<void> {
    checkKey(key)
    await this.#writer.call('delete', [key])
  }

  async deleteAll(prefix: string): Promise<void> {
    checkKey(prefix)
    await this.#writer.call('deleteAll', [prefix])
  }

  async list(after: string, limit: number): Promise<readonly BlobEntry[]> {
    checkLimit(limit)
    return this.#reader.call<readonly BlobEntry[]>('list', [after, limit])
  }

  async ping(signal: AbortSignal): Promise<void> {
    try {
      this.#file.checkDamage()
      await untilAborted(Promise.all([this.#writer.call('readEnds', []), this.#writer.call('ping', [])]), signal)
    } catch (error) {
      throw this.#file.toProblem(error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closing.disposeAsync()
  }
}
