import { createHash } from 'node:crypto'
import { KisError, NotFound, ServiceUnavailable } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { DuplicateKey } from '../../../common/ports/document-store.ts'
import { sizeTexts } from '../../../common/sizes.ts'
import type { BlobRecord, CountedNumber, Piece } from '../../domain/records.ts'
import { BlobCorrupted, type BlobStore } from '../../ports/blob-store.ts'
import { type Counted, count, readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { deletePieces, readPieces } from './pieces.ts'

type BlobDeps = Pick<Deps, 'store' | 'blobs' | 'clock' | 'ids' | 'log'>
type ReferDeps = BlobDeps & Pick<Deps, 'room'>

/** An upload or deletion takes seconds. One that began longer ago was interrupted. */
const STALE_REFERENCE_MS = 10 * 60_000
const SWEEP_PAGE = 100
/** The number of files with the same bytes that an organization may have. The blob's record lists them. */
const MAX_REFERENCES = 1_000
/** The number of times that an upload helps to delete an old blob with the same content. */
const MAX_TRIES = 10

/**
 * Stores the bytes of a file that is about to be recorded, and counts them. All files of an organization with the same
 * content share one blob; what is missing of its bytes is stored again. The caller must then call `confirmBlob` or
 * `releaseBlob`.
 * @throws {KisError} `storage_quota_exceeded` if the organization has the most files, or 1,000 with these bytes.
 * @throws {KisError} `storage_quota_exceeded` if the plan has no room for the bytes.
 * @throws {ServiceUnavailable} if other changes of the same blob get in the way.
 */
export async function referBlob(deps: ReferDeps, principal: Principal, fileId: string, bytes: Uint8Array): Promise<BlobRecord> {
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const content: Content = { sha256, sizeBytes: bytes.length, bytesKey: deps.ids('file') }
  return refer(deps, principal, fileId, content, async ({ offset, length }) => bytes.subarray(offset, offset + length))
}

/**
 * As `referBlob`, for bytes that are stored in pieces. The caller deletes the pieces if the blob that it gets has other
 * ones.
 * @throws {NotFound} if a piece is missing. Nothing then refers to the blob.
 */
export function referPieces(deps: ReferDeps, principal: Principal, fileId: string, content: Required<Content>): Promise<BlobRecord> {
  return refer(deps, principal, fileId, content, (range) => readPieces(deps.blobs, content.pieces, range))
}

type ReadRange = (range: { readonly offset: number; readonly length: number }) => Promise<Uint8Array | null>

interface Content {
  readonly sha256: string
  readonly sizeBytes: number
  readonly bytesKey: string
  readonly pieces?: readonly Piece[]
}

async function refer(deps: ReferDeps, principal: Principal, fileId: string, content: Content, read: ReadRange): Promise<BlobRecord> {
  const { organizationId, plan } = principal
  const { sizeBytes } = content
  await deps.room.reserve('files', organizationId)
  const blob = await referTo(deps, organizationId, fileId, content)
  if (sizeBytes === 0) return blob
  if (!(await storeMissing(deps.blobs, blob, read))) {
    await releaseBlob(deps, blob._id, fileId)
    throw new NotFound('upload', content.bytesKey)
  }
  if (blob.counted.value > 0) return blob
  const outcome = await count(deps, countedBlob(deps, blob), sizeBytes, plan.storageBytes)
  if (outcome === 'counted') return blob
  await releaseBlob(deps, blob._id, fileId)
  if (outcome === 'lost') throw new ServiceUnavailable('The file storage')
  const { storageBytes } = await readUsage(deps.store, organizationId)
  // Only a plan with a limit refuses.
  const [used, most, needed] = sizeTexts(storageBytes, plan.storageBytes!, sizeBytes)
  throw new KisError(
    'storage_quota_exceeded',
    `The storage quota of the plan does not cover this file: ${used} of ${most} used, ${needed} needed. Delete files first.`,
  )
}

/**
 * Stores what is missing of a blob's bytes. Others may do so at the same time: they have the same bytes. False if `read`
 * does not have them either.
 */
async function storeMissing(blobs: BlobStore, { bytesKey, sizeBytes, pieces }: BlobRecord, read: ReadRange): Promise<boolean> {
  let offset = 0
  for (const piece of pieces ?? [{ key: bytesKey, sizeBytes }]) {
    if (!(await isStored(blobs, piece))) {
      const bytes = await read({ offset, length: piece.sizeBytes })
      if (!bytes) return false
      await blobs.put(piece.key, bytes)
    }
    offset += piece.sizeBytes
  }
  return true
}

/** A piece is written as a whole, so its last byte says that it is there. */
async function isStored(blobs: BlobStore, { key, sizeBytes }: Piece): Promise<boolean> {
  const last = await blobs.get(key, { offset: sizeBytes - 1, length: 1 }).catch((error: unknown) => {
    if (error instanceof BlobCorrupted) return null
    throw error
  })
  return last?.length === 1
}

async function referTo(deps: BlobDeps, organizationId: string, fileId: string, content: Content): Promise<BlobRecord> {
  const { store, clock } = deps
  const { sha256, sizeBytes, bytesKey, pieces } = content
  const _id = blobId(organizationId, sha256)
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    const now = clock.now()
    const reference = `references.${fileId}`
    const $set = { pendingAt: now, [reference]: now.getTime() }
    try {
      const blob = await store.blobs.findOneAndUpdate(
        { _id, dying: false, [reference]: null, referenceCount: { $lt: MAX_REFERENCES } },
        {
          $set,
          $inc: { referenceCount: 1 },
          $setOnInsert: {
            organizationId,
            sizeBytes,
            bytesKey,
            ...(pieces && { pieces: pieces.map((piece) => ({ ...piece })) }),
            counted: { value: 0, by: bytesKey },
          },
        },
        { upsert: true },
      )
      return blob!
    } catch (error) {
      if (!(error instanceof DuplicateKey)) throw error
      const there = await store.blobs.findOne({ _id })
      if (there?.dying) await removeBlob(deps, there)
      // An interrupted completion of the same upload has referred to it.
      const again = await store.blobs.findOneAndUpdate({ _id, dying: false, [reference]: { $gte: 0 } }, { $set })
      if (again) return again
      if (there && there.referenceCount >= MAX_REFERENCES) throw tooMany()
    }
  }
  throw new ServiceUnavailable('The file storage')
}

function tooMany(): KisError {
  const message = `The organization has ${MAX_REFERENCES} files with the same bytes, which is the limit. Use one of them, or delete some first.`
  return new KisError('storage_quota_exceeded', message)
}

/**
 * Confirms that the file of a reference is recorded. Returns false if the sweep took the upload for an interrupted one.
 * The file then has no bytes.
 */
export async function confirmBlob({ store }: BlobDeps, { _id }: BlobRecord, fileId: string): Promise<boolean> {
  const reference = `references.${fileId}`
  return (await store.blobs.findOneAndUpdate({ _id, [reference]: { $gt: 0 } }, { $set: { [reference]: 0 } })) !== null
}

/** Marks the blob for the sweep before its file is deleted, so that a crash between the two leaves nothing behind. */
export async function expectRelease({ store, clock }: BlobDeps, id: string, fileId: string): Promise<void> {
  const now = clock.now()
  const reference = `references.${fileId}`
  await store.blobs.findOneAndUpdate({ _id: id, [reference]: { $gte: 0 } }, { $set: { pendingAt: now, [reference]: now.getTime() } })
}

/**
 * Removes one file's reference, if it is still `as` it was read. Removing the last one deletes the bytes and their
 * count. Repeatable.
 */
export async function releaseBlob(deps: BlobDeps, id: string, fileId: string, as: number | { $gte: 0 } = { $gte: 0 }): Promise<void> {
  const { store, clock } = deps
  await store.blobs.findOneAndUpdate(
    { _id: id, [`references.${fileId}`]: as },
    { $unset: { [`references.${fileId}`]: '' }, $inc: { referenceCount: -1 }, $set: { pendingAt: clock.now() } },
  )
  await removeUnused(deps, id)
}

/** Deletes the bytes if no file refers to them. Repeatable. */
export async function removeUnused(deps: BlobDeps, id: string): Promise<void> {
  const { store } = deps
  const blob = await store.blobs.findOne({ _id: id })
  if (!blob || blob.referenceCount > 0) return
  await count(deps, countedBlob(deps, blob), 0)
  const dying = await store.blobs.findOneAndUpdate({ _id: id, referenceCount: 0, 'counted.value': 0 }, { $set: { dying: true } })
  if (dying) await removeBlob(deps, dying)
}

/** Deletes the bytes first, because only the record has their key. */
async function removeBlob({ store, blobs }: BlobDeps, { _id, bytesKey, pieces }: BlobRecord): Promise<void> {
  if (pieces) await deletePieces(blobs, bytesKey)
  else await blobs.delete(bytesKey)
  await store.blobs.findOneAndDelete({ _id, bytesKey })
}

/**
 * Finishes one page of uploads and deletions that crashes interrupted: references whose file was never recorded or is
 * gone. Returns true if there may be more.
 */
export async function sweepBlobs(deps: BlobDeps): Promise<boolean> {
  const { store, clock } = deps
  const staleBefore = clock.now().getTime() - STALE_REFERENCE_MS
  const pending = await store.blobs.find({ pendingAt: { $lte: new Date(staleBefore) } }, { sort: { pendingAt: 1 }, limit: SWEEP_PAGE })
  for (const blob of pending) {
    for (const [fileId, since] of Object.entries(blob.references)) {
      if (since === 0) continue
      if (await store.files.findOne({ _id: fileId })) await confirmBlob(deps, blob, fileId)
      // A repeated upload may have recorded the file meanwhile.
      else await releaseBlob(deps, blob._id, fileId, since)
    }
    await count(deps, countedBlob(deps, blob), null)
    await removeUnused(deps, blob._id)
    // An upload or deletion that has begun since has set another time.
    await store.blobs.findOneAndUpdate({ _id: blob._id, pendingAt: blob.pendingAt! }, { $unset: { pendingAt: '' } })
  }
  return pending.length === SWEEP_PAGE
}

/** Returns the id of the blob with this content. It ends with the 64 hexadecimal digits of the SHA-256. */
export function blobId(organizationId: string, sha256: string): string {
  return `${organizationId}_${sha256}`
}

function countedBlob({ store }: BlobDeps, { _id, organizationId }: BlobRecord): Counted {
  return {
    organizationId,
    subject: `blob_${_id.slice(-64)}`,
    total: 'storageBytes',
    exclusive: false,
    current: async () => (await store.blobs.findOne({ _id }))?.counted,
    write: async (number: CountedNumber, before: CountedNumber) => {
      // A new reference may need the bytes again. Then keep their count.
      const guard = number.value < before.value ? { referenceCount: 0 } : {}
      return (await store.blobs.findOneAndUpdate({ _id, 'counted.by': before.by, ...guard }, { $set: { counted: { ...number } } })) !== null
    },
  }
}
