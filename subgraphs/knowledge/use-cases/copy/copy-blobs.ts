import { createHash } from 'node:crypto'
import { RecordSum } from '../../../common/documents/record-sum.ts'
import type { BlobEntry, BlobStore } from '../../ports/blob-store.ts'

const PAGE = 500
/**
 * What is copied at once: this many blobs of this many bytes together, or one that is larger. So a copy has twice this
 * in memory, or twice one blob of at most 256 MiB.
 */
const MAX_AT_ONCE = 16
const MAX_BYTES_AT_ONCE = 32 * 1024 * 1024
/** The bytes of one read where a blob is not needed as a whole. */
const READ_BYTES = 8 * 1024 * 1024

/** Told of each blob that has been looked at. */
type Moved = (blobs: number, bytes: number) => void

/**
 * Gives `to` the blobs of `from`, and no others. What is equal stays. Nobody may write to either meanwhile. Repeatable.
 * @throws {BlobDamaged} a blob of `from` lacks pieces
 */
export async function copyBlobs(from: BlobStore, to: BlobStore, moved: Moved): Promise<void> {
  let waiting: (() => Promise<void>)[] = []
  let bytes = 0
  const flush = async () => {
    await Promise.all(waiting.map((run) => run()))
    moved(waiting.length, bytes)
    waiting = []
    bytes = 0
  }
  for await (const { key, own, other } of listBoth(from, to)) {
    if (own === null) {
      await to.delete(key)
      continue
    }
    if (waiting.length === MAX_AT_ONCE || bytes + own > MAX_BYTES_AT_ONCE) await flush()
    waiting.push(() => copyBlob(from, to, key, other === own))
    bytes += own
  }
  await flush()
}

async function copyBlob(from: BlobStore, to: BlobStore, key: string, mayBeEqual: boolean): Promise<void> {
  const bytes = await from.get(key)
  if (!bytes) throw new Error(`The blob ${key} was deleted during the copy. Stop the service, and copy again.`)
  const there = mayBeEqual ? await to.get(key).catch(() => null) : null
  if (!there || Buffer.compare(there, bytes) !== 0) await to.put(key, bytes)
}

interface Pair {
  readonly key: string
  /** Bytes in each store; null: it does not have the key. */
  readonly own: number | null
  readonly other: number | null
}

/** The keys of both stores, in order. */
async function* listBoth(from: BlobStore, to: BlobStore): AsyncGenerator<Pair> {
  const [owns, others] = [listAll(from), listAll(to)]
  let own = (await owns.next()).value
  let other = (await others.next()).value
  while (own || other) {
    const order = !own ? 1 : !other ? -1 : Buffer.compare(Buffer.from(own.key), Buffer.from(other.key))
    yield {
      key: order <= 0 ? own!.key : other!.key,
      own: order <= 0 ? own!.sizeBytes : null,
      other: order >= 0 ? other!.sizeBytes : null,
    }
    if (order <= 0) own = (await owns.next()).value
    if (order >= 0) other = (await others.next()).value
  }
}

async function* listAll(store: BlobStore): AsyncGenerator<BlobEntry, undefined> {
  for (let after = ''; ; ) {
    const page = await store.list(after, PAGE)
    yield* page
    if (page.length < PAGE) return undefined
    after = page.at(-1)!.key
  }
}

/** Reads all blobs of a store, and gives the checksum of their keys and bytes. */
export async function sumBlobs(store: BlobStore, moved: Moved): Promise<RecordSum> {
  const sum = new RecordSum()
  for await (const { key, sizeBytes } of listAll(store)) {
    const hash = createHash('sha256')
    let read = 0
    do {
      const bytes = await store.get(key, { offset: read, length: READ_BYTES })
      if (!bytes || bytes.length === 0) break
      hash.update(bytes)
      read += bytes.length
    } while (read < sizeBytes)
    sum.add(`${key} ${read} `, hash.digest())
    moved(1, read)
  }
  return sum
}
