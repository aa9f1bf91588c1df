import { KisError, NotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { sizeTexts } from '../../../common/sizes.ts'
import { decodeBase64 } from '../../domain/base64.ts'
import { requireFileName } from '../../domain/names.ts'
import type { FileRecord, Piece, UploadRecord } from '../../domain/records.ts'
import { readUsage } from '../count-usage.ts'
import type { Deps } from '../deps.ts'
import { deletePieces, pieceKey, readPieces } from '../files/pieces.ts'

/** Maximum bytes per append. In base64, they fit into the body limit of chat. */
const MAX_APPENDED_BYTES = 4 * 1024 * 1024
/** A smaller last piece is merged with the next append, so that a file has few pieces however it is sent. */
const FULL_PIECE_BYTES = 1024 * 1024
/**
 * Lifetime of an upload. A day is enough for 500 MB at 50 kbit/s. After a longer pause, the client starts a new upload.
 */
const LIFE_MS = 24 * 60 * 60_000
/** Maximum unfinished uploads per organization, more than a browser's folder upload has in parallel. */
const MAX_OPEN = 100
/** Maximum total size of an organization's unfinished uploads, in files of the plan's maximum size. */
const MAX_OPEN_FILES = 8
/** Maximum characters of `metadata`, more than a header can have. */
const MAX_METADATA = 4_096

interface UploadInput {
  readonly name: string
  /** Null: unknown. The upload then grows with each append. */
  readonly sizeBytes?: number | null
  readonly metadata?: string | null
}

/**
 * Starts an upload. It counts against the plan only when it is completed, but its size must fit the plan now. An upload
 * without a size must fit with each append.
 * @throws {KisError} `payload_too_large` if the file is larger than the plan allows.
 * @throws {KisError} `storage_quota_exceeded` if the plan has no room for it.
 * @throws {KisError} `rate_limit_exceeded` if the organization has too many unfinished uploads.
 * @throws {KisError} `invalid_request` if the name or the size is invalid.
 */
export async function createUpload(deps: Deps, context: LinkContext, input: UploadInput): Promise<UploadRecord> {
  const principal = requireScope(context.caller, 'knowledge:write')
  const { organizationId } = principal
  const name = requireFileName(input.name, 'input.name')
  const { metadata = null } = input
  const isGrowing = input.sizeBytes === null || input.sizeBytes === undefined
  const sizeBytes = input.sizeBytes ?? 0
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0)
    throw new KisError('invalid_request', 'The size is a whole number of bytes, from 0.', { param: 'input.sizeBytes' })
  if (metadata !== null && metadata.length > MAX_METADATA)
    throw new KisError('string_above_max_length', `The metadata has at most ${MAX_METADATA} characters.`, { param: 'input.metadata' })
  requireSize(sizeBytes, principal, 'input.sizeBytes')
  const now = deps.clock.now()
  const upload: UploadRecord = {
    _id: deps.ids('upload'),
    organizationId,
    openOf: organizationId,
    name,
    sizeBytes,
    ...(isGrowing && { isGrowing }),
    offset: 0,
    pieces: [],
    status: 'open',
    metadata,
    fileId: deps.ids('file'),
    createdAt: now,
    expiresAt: new Date(now.getTime() + LIFE_MS),
  }
  await deps.store.uploads.insertOne(upload)
  try {
    await requireRoom(deps, principal, upload, await listOpen(deps, organizationId))
  } catch (error) {
    await deps.store.uploads.findOneAndDelete({ _id: upload._id })
    throw error
  }
  return upload
}

function requireSize(sizeBytes: number, { plan }: Principal, param: string): void {
  if (sizeBytes <= plan.maxFileBytes) return
  const [has, most] = sizeTexts(sizeBytes, plan.maxFileBytes)
  const message = `The file has at least ${has}; the plan allows ${most}. Split it into smaller files.`
  throw new KisError('payload_too_large', message, { param })
}

const listOpen = ({ store }: Deps, organizationId: string) => store.uploads.find({ openOf: organizationId }, { limit: MAX_OPEN + 1 })

/**
 * Checks the limits of unfinished uploads. `open` includes the upload itself: a new one is checked after it is written,
 * so that no more than allowed remain of many concurrent ones.
 */
async function requireRoom(
  { store }: Deps,
  { organizationId, plan }: Principal,
  { sizeBytes }: UploadRecord,
  open: readonly UploadRecord[],
): Promise<void> {
  const openBytes = open.reduce((sum, upload) => sum + upload.sizeBytes, 0)
  if (open.length > MAX_OPEN || openBytes > MAX_OPEN_FILES * plan.maxFileBytes) {
    const [has, most] = sizeTexts(openBytes - sizeBytes, MAX_OPEN_FILES * plan.maxFileBytes)
    throw new KisError(
      'rate_limit_exceeded',
      `Your organization has ${open.length - 1} unfinished uploads of ${has}; at most ${MAX_OPEN} of ${most} are allowed. Finish or cancel some first.`,
      { retryAfterMs: 10_000 },
    )
  }
  if (plan.storageBytes === null) return
  const { storageBytes } = await readUsage(store, organizationId)
  if (storageBytes + openBytes > plan.storageBytes) {
    const [used, most, unfinished, needed] = sizeTexts(storageBytes, plan.storageBytes, openBytes - sizeBytes, sizeBytes)
    throw new KisError(
      'storage_quota_exceeded',
      `The storage quota of the plan does not cover this file: ${used} of ${most} used, ${unfinished} in unfinished uploads, ${needed} needed. Delete files first.`,
    )
  }
}

/**
 * Checks an upload of unknown size before it grows. Each of many concurrent uploads may exceed the limit by one append.
 */
async function requireRoomToGrow(deps: Deps, principal: Principal, upload: UploadRecord, sizeBytes: number): Promise<void> {
  requireSize(sizeBytes, principal, 'input.contentBase64')
  const grown = { ...upload, sizeBytes }
  const open = await listOpen(deps, principal.organizationId)
  await requireRoom(
    deps,
    principal,
    grown,
    open.map((each) => (each._id === upload._id ? grown : each)),
  )
}

/**
 * Appends bytes to an upload. They are stored durably when it returns.
 * @throws {KisError} `in_use` if the upload's offset is not `offset`, for example because another call was faster.
 * @throws {KisError} `payload_too_large` if the bytes are too many for one call, or for the upload.
 */
export async function appendToUpload(
  deps: Deps,
  context: LinkContext,
  { id, offset, contentBase64 }: { readonly id: string; readonly offset: number; readonly contentBase64: string },
): Promise<UploadRecord> {
  const principal = requireScope(context.caller, 'knowledge:write')
  const { store, blobs, ids } = deps
  const upload = await getOpen(deps, principal.organizationId, id)
  const bytes = decodeBase64(contentBase64, MAX_APPENDED_BYTES, 'input.contentBase64')
  if (offset !== upload.offset) throw elsewhere(upload)
  const end = offset + bytes.length
  if (upload.isGrowing) await requireRoomToGrow(deps, principal, upload, end)
  else if (end > upload.sizeBytes)
    throw new KisError('payload_too_large', `The upload has ${upload.sizeBytes} bytes by its creation; ${end} were sent.`, {
      param: 'input.contentBase64',
    })
  if (bytes.length === 0) return upload
  const { tail, before } = await readTail(deps, upload, bytes.length)
  // Each call writes to its own key, so that two calls at the same offset cannot mix their bytes.
  const piece: Piece = { key: pieceKey(upload._id, ids('file')), sizeBytes: tail.length + bytes.length }
  await blobs.put(piece.key, tail.length > 0 ? Buffer.concat([tail, bytes]) : bytes)
  const pieces = [...before, piece].map((each) => ({ ...each }))
  const written = await store.uploads.findOneAndUpdate(
    { _id: id, status: 'open', offset, sha256: null },
    { $set: { pieces, offset: end, ...(upload.isGrowing && { sizeBytes: end }) } },
  )
  if (!written) {
    await blobs.delete(piece.key)
    throw elsewhere(await getOpen(deps, principal.organizationId, id))
  }
  const replaced = upload.pieces.at(before.length)
  if (replaced) await blobs.delete(replaced.key)
  return written
}

/** Returns the last piece, if the new bytes fit into it, and the pieces before it. */
async function readTail({ blobs }: Deps, { pieces }: UploadRecord, sizeBytes: number) {
  const last = pieces.at(-1)
  if (!last || last.sizeBytes + sizeBytes > FULL_PIECE_BYTES) return { tail: new Uint8Array(), before: pieces }
  const tail = await readPieces(blobs, [last], { offset: 0, length: last.sizeBytes })
  if (!tail) throw new Error(`the last piece of an upload is missing: ${last.key}`)
  return { tail, before: pieces.slice(0, -1) }
}

function elsewhere({ offset }: UploadRecord): KisError {
  return new KisError('in_use', `The upload has ${offset} bytes. Continue from there.`, { param: 'input.offset' })
}

/**
 * Cancels an upload and deletes its bytes. A completed upload stays unchanged.
 * @throws {NotFound} if the organization has no such upload.
 */
export async function cancelUpload(deps: Deps, context: LinkContext, id: string): Promise<UploadRecord> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  const { store, blobs } = deps
  const cancelled = await store.uploads.findOneAndUpdate(
    { _id: id, organizationId, status: 'open', sha256: null },
    { $set: { status: 'cancelled', pieces: [] }, $unset: { openOf: '' } },
  )
  const upload = cancelled ?? (await getUpload(deps, organizationId, id))
  if (!cancelled && upload.status !== 'cancelled') {
    const state = upload.status === 'open' ? 'being completed' : 'complete'
    throw new KisError('in_use', `The upload is ${state}. Delete its file instead.`, { param: 'id' })
  }
  // Another file may share the bytes of a sealed upload that was refused. Its completion has deleted unused bytes.
  if (!upload.sha256) await deletePieces(blobs, id)
  return upload
}

/** Returns an upload of the caller's organization, or null if there is none. */
export async function findUpload({ store, clock }: Deps, { caller }: LinkContext, id: string): Promise<UploadRecord | null> {
  const { organizationId } = requireScope(caller, 'knowledge:write')
  const upload = await store.uploads.findOne({ _id: id, organizationId })
  return upload && upload.expiresAt > clock.now() ? upload : null
}

/** Returns the file that was created from an upload, or null. */
export async function findFileOf({ store }: Pick<Deps, 'store'>, upload: UploadRecord): Promise<FileRecord | null> {
  const { organizationId, status, fileId } = upload
  return status === 'completed' ? store.files.findOne({ _id: fileId, organizationId }) : null
}

/** @throws {NotFound} if the organization has no such upload, or it has expired. */
export async function getUpload(
  { store, clock }: Pick<Deps, 'store' | 'clock'>,
  organizationId: string,
  id: string,
): Promise<UploadRecord> {
  const upload = await store.uploads.findOne({ _id: id, organizationId })
  if (!upload || upload.expiresAt <= clock.now()) throw new NotFound('upload', id)
  return upload
}

/** @throws {KisError} `not_found`; or `in_use` if the upload is completed or cancelled. */
async function getOpen(deps: Deps, organizationId: string, id: string): Promise<UploadRecord> {
  const upload = await getUpload(deps, organizationId, id)
  if (upload.status === 'open' && !upload.sha256) return upload
  const state = upload.status === 'open' ? 'being completed' : upload.status
  throw new KisError('in_use', `The upload is ${state}, so it accepts no more bytes. Create another.`, { param: 'id' })
}
