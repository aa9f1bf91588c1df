import { createHash } from 'node:crypto'
import { KisError, NotFound, ServiceUnavailable } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import type { BlobRecord, FileRecord, UploadRecord } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { blobId, confirmBlob, referPieces } from '../files/blobs.ts'
import { requireUse } from '../files/files.ts'
import { deletePieces, readPieces, streamBlob } from '../files/pieces.ts'
import { sampleOf } from '../files/sample.ts'
import { getUpload } from './uploads.ts'

/** Uploads that expired this long ago are swept: one that is being completed just then is left alone. */
const SWEEP_AFTER_MS = 10 * 60_000
const SWEEP_PAGE = 100
/** The last step of a completion makes some writes. One that began it longer ago was interrupted. */
const STALE_COMPLETION_MS = 60_000

/**
 * Makes the file of an upload that has all its bytes. Completing it again gives the same file. An upload whose file is
 * refused for good ends with that error, and what came in is deleted.
 * @throws {NotFound} if the organization has no such upload.
 * @throws {KisError} `invalid_request` if bytes are missing.
 * @throws {KisError} what `uploadFile` refuses a file with.
 */
export async function completeUpload(deps: Deps, context: LinkContext, id: string): Promise<UploadRecord> {
  const principal = requireScope(context.caller, 'knowledge:write')
  const { store } = deps
  const { organizationId } = principal
  const begun = await getUpload(deps, organizationId, id)
  if (begun.status === 'completed') return begun
  if (begun.status === 'cancelled') throw new KisError('in_use', 'The upload is cancelled. Create another.')
  if (begun.offset !== begun.sizeBytes)
    throw new KisError('invalid_request', `${begun.offset} of ${begun.sizeBytes} bytes are there. Send the rest first.`)
  const sha256 = await digest(deps, begun)
  const upload = { ...begun, sha256, fileId: await seal(deps, begun, sha256) }
  // An interrupted completion may have made the file.
  if (!(await store.files.findOne({ _id: upload.fileId, organizationId })))
    await finish(deps, principal, upload, sha256).catch(async (error: unknown) => {
      if (error instanceof KisError && !error.shouldRetry) await end(deps, upload)
      else await store.uploads.findOneAndUpdate({ _id: id }, { $unset: { completing: '' } })
      throw error
    })
  const completed = await store.uploads.findOneAndUpdate({ _id: id }, { $set: { status: 'completed', pieces: [] }, $unset: { openOf: '' } })
  if (!completed) throw new NotFound('upload', id)
  return completed
}

/**
 * From now on nothing is appended, and nobody else completes it. Gives the id of the file: it begins with the time of its
 * creation, which is now unless a completion was interrupted.
 * @throws {KisError} `in_use` if it has changed, or another completion is in flight.
 */
async function seal({ store, clock, ids }: Deps, upload: UploadRecord, sha256: string): Promise<string> {
  const { _id, organizationId: openOf, offset } = upload
  const now = clock.now()
  const fileId = upload.sha256 === undefined ? ids('file') : upload.fileId
  const stale = new Date(now.getTime() - STALE_COMPLETION_MS)
  for (const completing of [null, { $lte: stale }]) {
    const filter = { _id, openOf, offset, completing, sha256: upload.sha256 ?? null }
    if (await store.uploads.findOneAndUpdate(filter, { $set: { sha256, fileId, completing: now } })) return fileId
  }
  throw new KisError('in_use', 'The upload is being completed, or has changed. Get it in a second.', { retryAfterMs: 1_000 })
}

async function digest({ blobs }: Deps, { _id, sizeBytes, pieces }: UploadRecord): Promise<string> {
  const sha256 = createHash('sha256')
  for await (const bytes of streamBlob(blobs, { bytesKey: _id, pieces, sizeBytes }, () => new NotFound('upload', _id))) sha256.update(bytes)
  return sha256.digest('hex')
}

async function finish(deps: Deps, principal: Principal, upload: UploadRecord, sha256: string): Promise<void> {
  const { store, blobs, parser, clock } = deps
  const { _id, organizationId, name, sizeBytes, pieces, fileId } = upload
  const { bytes, cutBytes } = await sampleOf(sizeBytes, async (range) => {
    const found = await readPieces(blobs, pieces, range)
    return found ?? Promise.reject(new ServiceUnavailable('The file storage'))
  })
  const mediaType = parser.sniff(bytes, name, cutBytes)
  requireUse(mediaType, null)
  const blob = await referPieces(deps, principal, fileId, { sha256, sizeBytes, bytesKey: _id, pieces })
  const file: FileRecord = {
    _id: fileId,
    organizationId,
    name,
    mediaType,
    sha256,
    sizeBytes,
    attachments: {},
    attachmentCount: 0,
    createdAt: clock.now(),
  }
  await store.files.insertOne(file)
  if (!(await confirmBlob(deps, blob, fileId))) {
    await store.files.findOneAndDelete({ _id: fileId })
    throw new ServiceUnavailable('The file storage')
  }
  // The organization has had these bytes before.
  if (blob.bytesKey !== _id) await deletePieces(blobs, _id)
}

async function end(deps: Deps, upload: UploadRecord): Promise<void> {
  await deps.store.uploads.findOneAndUpdate({ _id: upload._id }, { $set: { status: 'cancelled', pieces: [] }, $unset: { openOf: '' } })
  if (!(await findOwnBlob(deps, upload))) await deletePieces(deps.blobs, upload._id)
}

/** The blob that has the pieces of a sealed upload, which it keeps until its last file is deleted. */
async function findOwnBlob({ store }: Deps, { _id, organizationId, sha256 }: UploadRecord): Promise<BlobRecord | null> {
  const blob = sha256 ? await store.blobs.findOne({ _id: blobId(organizationId, sha256) }) : null
  return blob?.bytesKey === _id ? blob : null
}

/** Deletes one page of expired uploads, with the bytes that no file has. Returns true if there may be more. */
export async function sweepUploads(deps: Deps): Promise<boolean> {
  const { store, clock } = deps
  const now = clock.now().getTime()
  const expired = await store.uploads.find(
    { expiresAt: { $lte: new Date(now - SWEEP_AFTER_MS) } },
    { sort: { expiresAt: 1 }, limit: SWEEP_PAGE },
  )
  for (const { _id } of expired) {
    // A completion that has not sealed it yet no longer can.
    const ended = await store.uploads.findOneAndUpdate({ _id, sha256: null }, { $set: { status: 'cancelled' }, $unset: { openOf: '' } })
    const upload = ended ?? (await store.uploads.findOne({ _id }))
    if (!upload || (upload.status === 'open' && (upload.completing?.getTime() ?? 0) > now - STALE_COMPLETION_MS)) continue
    await dropUpload(deps, upload)
  }
  return expired.length === SWEEP_PAGE
}

/** Deletes an upload with the bytes that no file has. Repeatable. */
export async function dropUpload(deps: Deps, upload: UploadRecord): Promise<void> {
  // The sweep of blobs finds one whose file was never recorded.
  if (!(await findOwnBlob(deps, upload))) await deletePieces(deps.blobs, upload._id)
  await deps.store.uploads.findOneAndDelete({ _id: upload._id })
}
