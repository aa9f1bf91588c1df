import { type OpenedFile, openFile, type SqliteStoreOptions } from '../../../common/adapters/sqlite/open-file.ts'
import { BULK_WRITES, FileThread, SCANS } from '../../../common/adapters/sqlite/threads.ts'
import { untilAborted } from '../../../common/process/until-aborted.ts'
import { BlobCorrupted, type BlobEntry, type BlobStore } from '../../ports/blob-store.ts'
import { checkKey, checkLimit, checkRange, checkSize, MAX_BLOB_BYTES } from '../blob-arguments.ts'
import { BLOB_FILE } from './blob-file.ts'

/**
 * Opens the blobs of one SQLite file, which is created if needed. One thread writes and another reads, so that large
 * blobs do not block the event loop.
 * @throws {Error} the file is in use, corrupted, of another kind or installation, or of a newer version
 * @throws {Unfit} the storage fails
 */
export async function openSqliteBlobStore(options: SqliteStoreOptions): Promise<BlobStore & AsyncDisposable> {
  const script = new URL('./blob-writer.ts', import.meta.url)
  return new SqliteBlobStore(await openFile(options, { kind: BLOB_FILE, thread: BULK_WRITES, script }))
}

class SqliteBlobStore implements BlobStore, AsyncDisposable {
  readonly #opened: OpenedFile
  readonly #reader: FileThread

  constructor(opened: OpenedFile) {
    this.#opened = opened
    this.#reader = opened.closing.use(new FileThread(SCANS, new URL('./blob-reader.ts', import.meta.url), opened.file))
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    checkKey(key)
    checkSize(bytes)
    // The thread gets a copy, because the caller owns the bytes and may change them at once.
    const copy = new Uint8Array(bytes)
    await this.#opened.writer.call('put', [key, copy], [copy.buffer])
  }

  async get(key: string, range?: { readonly offset: number; readonly length: number }): Promise<Uint8Array | null> {
    checkKey(key)
    const { offset, length } = range ?? { offset: 0, length: MAX_BLOB_BYTES }
    if (range) checkRange(offset, length)
    try {
      return await this.#reader.call<Uint8Array | null>('get', [key, offset, length])
    } catch (error) {
      throw error instanceof Error && error.name === 'BlobCorrupted' ? new BlobCorrupted(key, { cause: error }) : error
    }
  }

  async delete(key: string): Promise<void> {
    checkKey(key)
    await this.#opened.writer.call('delete', [key])
  }

  async deleteAll(prefix: string): Promise<void> {
    checkKey(prefix)
    await this.#opened.writer.call('deleteAll', [prefix])
  }

  async list(after: string, limit: number): Promise<readonly BlobEntry[]> {
    checkLimit(limit)
    return this.#reader.call<readonly BlobEntry[]>('list', [after, limit])
  }

  async ping(signal: AbortSignal): Promise<void> {
    const { file, writer } = this.#opened
    try {
      if (file.corruption) throw file.corruption
      await untilAborted(writer.call('ping', []), signal)
    } catch (error) {
      throw file.toProblem(error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.closing.disposeAsync()
  }
}
