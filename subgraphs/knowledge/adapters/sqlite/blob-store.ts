import { lockFile, prepareFile } from '../../../common/adapters/sqlite/database.ts'
import { startThread } from '../../../common/adapters/sqlite/threads.ts'
import type { Log } from '../../../common/log.ts'
import type { WorkerClient } from '../../../common/worker-rpc.ts'
import type { BlobStore } from '../../ports/blob-store.ts'
import { checkKey, checkRange, checkSize, MAX_BLOB_BYTES } from '../blob-arguments.ts'
import { BLOB_FILE } from './blob-file.ts'

const WHAT = 'The blob store'

/**
 * Opens the blobs of one SQLite file, and makes it when it is not there. Writes and reads run in a thread each, so that large ones leave
 * the loop alone. @throws {Error} the file is in use, of another kind, or of a newer version.
 */
export async function openSqliteBlobStore(options: { readonly file: string; readonly log: Log }): Promise<BlobStore & AsyncDisposable> {
  await using opening = new AsyncDisposableStack()
  const thread = { ...options, what: WHAT }
  opening.use(lockFile(options.file))
  prepareFile(options.file, BLOB_FILE)
  const writer = opening.use(startThread(new URL('./blob-writer.ts', import.meta.url), thread))
  await writer.call('isOpen', [])
  const reader = opening.use(startThread(new URL('./blob-reader.ts', import.meta.url), thread))
  return new SqliteBlobStore(writer, reader, opening.move())
}

class SqliteBlobStore implements BlobStore, AsyncDisposable {
  readonly #writer: WorkerClient
  readonly #reader: WorkerClient
  readonly #closing: AsyncDisposableStack

  constructor(writer: WorkerClient, reader: WorkerClient, closing: AsyncDisposableStack) {
    this.#writer = writer
    this.#reader = reader
    this.#closing = closing
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    checkKey(key)
    checkSize(bytes)
    // The copy is the thread's own: the caller keeps its bytes, and may change them at once.
    const copy = new Uint8Array(bytes)
    await this.#writer.call('put', [key, copy], [copy.buffer])
  }

  async get(key: string, range?: { readonly offset: number; readonly length: number }): Promise<Uint8Array | null> {
    checkKey(key)
    const { offset, length } = range ?? { offset: 0, length: MAX_BLOB_BYTES }
    if (range) checkRange(offset, length)
    return this.#reader.call('get', [key, offset, length])
  }

  async delete(key: string): Promise<void> {
    checkKey(key)
    await this.#writer.call('delete', [key])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closing.disposeAsync()
  }
}
