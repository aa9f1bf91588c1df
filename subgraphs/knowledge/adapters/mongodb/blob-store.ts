import { finished } from 'node:stream/promises'
import { type Binary, type ClientSession, type Collection, GridFSBucket, MongoError, MongoGridFSChunkError, ObjectId } from 'mongodb'
import { connectMongo } from '../../../common/adapters/mongodb/connection.ts'
import { isDuplicateKey, translated } from '../../../common/adapters/mongodb/failures.ts'
import type { ResilientClient } from '../../../common/adapters/mongodb/resilient-client.ts'
import { databaseAt, type MongoSnapshot } from '../../../common/adapters/mongodb/snapshot.ts'
import type { MongoDatabase } from '../../../common/documents/mongodb-url.ts'
import { ServiceUnavailable } from '../../../common/errors.ts'
import { untilAborted } from '../../../common/process/until-aborted.ts'
import { BlobCorrupted, type BlobEntry, type BlobStore } from '../../ports/blob-store.ts'
import { checkKey, checkLimit, checkRange, checkSize, MAX_BLOB_BYTES } from '../blob-arguments.ts'

const WHAT = 'The blob store'
/** Collection of the pointers. GridFS adds `.files` and `.chunks`. */
const NAME = 'contents'
/** As long as the pieces of a download, so that each reads one or two. */
const CHUNK_BYTES = 1024 * 1024
/**
 * An upload takes seconds. One that began longer ago was interrupted. Less than the age at which knowledge's sweep
 * deletes the key.
 */
const STALE_UPLOAD_MS = 5 * 60_000
/** Longest time of one call with all its chunks: as long as an upload counts as running. */
const TRANSFER_LIMIT_MS = STALE_UPLOAD_MS
/** Repeated reads of a key that is replaced during each. */
const MAX_READS = 10

/**
 * The contents of a key. A GridFS file never changes, so a reader of it sees no mixture. Replacing is one write of
 * this.
 */
interface Pointer {
  readonly _id: string
  readonly file?: ObjectId
  readonly size?: number
  /** Files being written. This finds one that a crash leaves behind, even before GridFS itself knows it. */
  readonly uploads: readonly ObjectId[]
}

/**
 * Opens the blobs in one MongoDB database. It has its own connections, so that large transfers do not delay documents.
 */
export async function openMongoBlobStore({ url, database }: MongoDatabase): Promise<BlobStore & AsyncDisposable> {
  return new MongoBlobStore(await connectMongo({ url, database }), database)
}

/** The blobs of a database at the moment of a snapshot. The driver's GridFS takes no session, so this reads its chunks. */
export function blobsAt(snapshot: MongoSnapshot, database: string): Pick<BlobStore, 'get' | 'list'> {
  const { client, session } = snapshot
  const db = databaseAt(snapshot, database)
  const pointers = db.collection<Pointer>(NAME)
  const chunks = db.collection<{ readonly files_id: ObjectId; readonly n: number; readonly data: Binary }>(`${NAME}.chunks`)
  return {
    get: (key, { offset, length } = { offset: 0, length: MAX_BLOB_BYTES }) =>
      withTransferTimeout(client, async () => {
        const pointer = await pointers.findOne({ _id: key }, { session })
        if (!pointer?.file) return null
        const found = await chunks.find({ files_id: pointer.file }, { session, sort: { n: 1 } }).toArray()
        const bytes = Buffer.concat(found.map(({ data }) => data.value()))
        if (bytes.length !== pointer.size) throw new BlobCorrupted(key)
        return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length).subarray(offset, offset + length)
      }),
    list: (after, limit) => withTransferTimeout(client, () => listPointers(pointers, after, { limit, session })),
  }
}

async function listPointers(
  pointers: Collection<Pointer>,
  after: string,
  { limit, ...at }: { readonly limit: number; readonly session?: ClientSession },
): Promise<readonly BlobEntry[]> {
  const found = await pointers
    .find({ _id: { $gt: after }, file: { $exists: true } }, { ...at, sort: { _id: 1 }, limit, batchSize: limit + 1 })
    .toArray()
  return found.map(({ _id: key, size }) => ({ key, sizeBytes: size! }))
}

async function withTransferTimeout<R>(client: ResilientClient, operation: () => Promise<R>): Promise<R> {
  try {
    return await client.withTimeout(operation, TRANSFER_LIMIT_MS)
  } catch (error) {
    throw translated(error, NAME, WHAT)
  }
}

class MongoBlobStore implements BlobStore, AsyncDisposable {
  readonly #client: ResilientClient
  readonly #pointers: Collection<Pointer>
  readonly #bucket: GridFSBucket

  constructor(client: ResilientClient, database: string) {
    this.#client = client
    this.#pointers = client.db(database).collection(NAME)
    this.#bucket = new GridFSBucket(client.db(database), { bucketName: NAME, chunkSizeBytes: CHUNK_BYTES })
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    checkKey(key)
    checkSize(bytes)
    await this.#run(async () => {
      const file = new ObjectId()
      await this.#announce(key, file)
      const upload = this.#bucket.openUploadStreamWithId(file, key)
      upload.end(bytes)
      await finished(upload)
      const before = await this.#pointers.findOneAndUpdate(
        { _id: key, uploads: file },
        { $set: { file, size: bytes.length }, $pull: { uploads: file } },
        { returnDocument: 'before' },
      )
      if (!before) {
        // It took so long that another process took it for interrupted.
        await this.#drop(file)
        throw new ServiceUnavailable(WHAT)
      }
      if (before.file || before.uploads.length > 1) await this.#clear(key)
    })
  }

  async get(key: string, range?: { readonly offset: number; readonly length: number }): Promise<Uint8Array | null> {
    checkKey(key)
    const { offset, length } = range ?? { offset: 0, length: MAX_BLOB_BYTES }
    if (range) checkRange(offset, length)
    return this.#run(async () => {
      let seen: ObjectId | undefined
      for (let read = 0; read < MAX_READS; read++) {
        const pointer = await this.#pointers.findOne({ _id: key })
        if (!pointer?.file) return null
        if (seen?.equals(pointer.file)) throw new BlobCorrupted(key)
        const bytes = await this.#read(pointer.file, offset, Math.min(offset + length, pointer.size!))
        if (bytes) return bytes
        seen = pointer.file
      }
      throw new ServiceUnavailable(WHAT)
    })
  }

  async delete(key: string): Promise<void> {
    checkKey(key)
    await this.#run(async () => {
      const pointer = await this.#pointers.findOneAndUpdate({ _id: key }, { $unset: { file: '', size: '' } })
      if (!pointer) return
      await this.#clear(key)
      await this.#pointers.deleteOne({ _id: key, file: { $exists: false }, uploads: { $size: 0 } })
    })
  }

  async deleteAll(prefix: string): Promise<void> {
    checkKey(prefix)
    const keys = await this.#run(() =>
      this.#pointers
        .find({ _id: { $gte: prefix, $lt: `${prefix}\u{10ffff}` } })
        .project<{ _id: string }>({ _id: 1 })
        .toArray(),
    )
    for (const { _id } of keys) await this.delete(_id)
  }

  async list(after: string, limit: number): Promise<readonly BlobEntry[]> {
    checkLimit(limit)
    return this.#run(() => listPointers(this.#pointers, after, { limit }))
  }

  async ping(signal: AbortSignal): Promise<void> {
    await untilAborted(
      this.#run(() => this.#pointers.findOne({}, { projection: { _id: 1 } })),
      signal,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close()
  }

  async #announce(key: string, file: ObjectId): Promise<void> {
    const announce = () => this.#pointers.updateOne({ _id: key }, { $push: { uploads: file } }, { upsert: true })
    // Another process has created the pointer meanwhile.
    await announce().catch((error) => (isDuplicateKey(error) ? announce() : Promise.reject(error)))
  }

  /** The bytes from `start` up to, not including, `end`; null when the file was replaced and is no longer complete. */
  async #read(file: ObjectId, start: number, end: number): Promise<Uint8Array | null> {
    if (end <= start) return new Uint8Array()
    const pieces: Buffer[] = []
    try {
      for await (const piece of this.#bucket.openDownloadStream(file, { start, end })) pieces.push(piece)
    } catch (error) {
      if (error instanceof MongoGridFSChunkError || (error instanceof MongoError && error.code === 'ENOENT')) return null
      throw error
    }
    // A piece of a download is one chunk, which needs no copy.
    const bytes = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces)
    return bytes.length === end - start ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length) : null
  }

  /**
   * Deletes every file of the key except the current one and those being written. Lists the files first: each was
   * announced before.
   */
  async #clear(key: string): Promise<void> {
    const files = await this.#bucket.find({ filename: key }, { projection: { _id: 1 } }).toArray()
    const pointer = await this.#pointers.findOne({ _id: key })
    const uploads = pointer?.uploads ?? []
    const stale = uploads.filter((id) => Date.now() - id.getTimestamp().getTime() > STALE_UPLOAD_MS)
    // A process that still writes one of these will not find itself announced at the end.
    if (stale.length > 0) await this.#pointers.updateOne({ _id: key }, { $pullAll: { uploads: stale } })
    const isReferenced = (id: ObjectId) => pointer?.file?.equals(id) || uploads.some((upload) => upload.equals(id))
    for (const id of [...stale, ...files.map(({ _id }) => _id).filter((id) => !isReferenced(id))]) await this.#drop(id)
  }

  async #drop(file: ObjectId): Promise<void> {
    try {
      await this.#bucket.delete(file)
    } catch (error) {
      // Its chunks are gone then, too. The driver has neither a class nor a code for this.
      if (!(error instanceof MongoError && error.message.startsWith('File not found for id'))) throw error
    }
  }

  #run<R>(operation: () => Promise<R>): Promise<R> {
    return withTransferTimeout(this.#client, operation)
  }
}
