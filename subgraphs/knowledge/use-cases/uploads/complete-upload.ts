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

/** Expired uploads are swept after this additional time, so that an upload that is being completed is not affected. */
const SWEEP_AFTER_MS = 10 * 60_000
const SWEEP_PAGE = 100
/** The last step of a completion takes a few writes. An older one was interrupted. */
const STALE_COMPLETION_MS = 60_000

/**
 * Creates the file of an upload that has all its bytes. A repeated completion returns the same file. An upload whose
 * file is permanently refused ends with that error, and its bytes are deleted.
 * @throws {NotFound} if the organization has no such upload.
 * @throws {KisError} `invalid_request` if bytes are missing.
 * @throws {KisError} like `uploadFile`, if the file is refused.
 */
export async function completeUpload(deps: Deps, context: LinkContext, id: string): Promise<UploadRecord> {
  const principal = requireScope(context.caller, 'knowledge:write')
  const { store } = deps
  const { organizationId } = principal
  const begun = await getUpload(deps, organizationId, id)
  if (begun.status === 'completed') return begun
  if (begun.status === 'cancelled') throw new KisError('in_use', 'The upload is cancelled. Create another.')
  if (begun.offset !== begun.sizeBytes)
    throw new KisError('invalid_request', `${begun.offset} of ${begun.sizeBytes} bytes are stored. Send the rest first.`)
  const sha256 = await digest(deps, begun)
  const upload = { ...begun, sha256, fileId: await seal(deps, begun, sha256) }
  // An interrupted completion may have created the file.
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
 * Seals the upload: nothing can be appended, and no other call completes it. Returns the file's ID. The ID starts with
 * its creation time, which is now unless a completion was interrupted.
 * @throws {KisError} `in_use` if the upload has changed, or another completion is in flight.
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
  // The organization already has a blob with these bytes.
  if (blob.bytesKey !== _id) await deletePieces(blobs, _id)
}

async function end(deps: Deps, upload: UploadRecord): Promise<void> {
  await deps.store.uploads.findOneAndUpdate({ _id: upload._id }, { $set: { status: 'cancelled', pieces: [] }, $unset: { openOf: '' } })
  if (!(await findOwnBlob(deps, upload))) await deletePieces(deps.blobs, upload._id)
}

/** Returns the blob that owns the pieces of a sealed upload until its last file is deleted. */
async function findOwnBlob({ store }: Deps, { _id, organizationId, sha256 }: UploadRecord): Promise<BlobRecord | null> {
  const blob = sha256 ? await store.blobs.findOne({ _id: blobId(organizationId, sha256) }) : null
  return blob?.bytesKey === _id ? blob : null
}

/** Deletes one page of expired uploads, with bytes that no file uses. Returns true if there may be more. */
export async function sweepUploads(deps: Deps): Promise<boolean> {
  const { store, clock } = deps
  const now = clock.now().getTime()
  const expired = await store.uploads.find(
    { expiresAt: { $lte: new Date(now - SWEEP_AFTER_MS) } },
    { sort: { expiresAt: 1 }, limit: SWEEP_PAGE },
  )
  for (const { _id } of expired) {
    // A completion that has not sealed the upload yet can no longer do so.
    const ended = await store.uploads.findOneAndUpdate({ _id, sha256: null }, { $set: { status: 'cancelled' }, $unset: { openOf: '' } })
    const upload = ended ?? (await store.uploads.findOne({ _id }))
    if (!upload || (upload.status === 'open' && (upload.completing?.getTime() ?? 0) > now - STALE_COMPLETION_MS)) continue
    await dropUpload(deps, upload)
  }
  return expired.length === SWEEP_PAGE
}

/** Deletes an upload, with bytes that no file uses. Repeatable. */
export async function dropUpload(deps: Deps, upload: UploadRecord): Promise<void> {
  // The sweep of blobs finds a blob whose file was never recorded.
  if (!(await findOwnBlob(deps, upload))) await deletePieces(deps.blobs, upload._id)
  await deps.store.uploads.findOneAndDelete({ _id: upload._id })
}
