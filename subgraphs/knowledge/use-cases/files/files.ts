import { listById, type OrderedPage } from '../../../common/documents/list-by-id.ts'
import { KisError, NotFound, ServiceUnavailable } from '../../../common/errors.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { FairPlaces, NoPlace } from '../../../common/process/fair-places.ts'
import { decodeBase64 } from '../../domain/base64.ts'
import { ENCRYPTED_OFFICE, FORMAT_LIST, isReadable, isSound } from '../../domain/media-types.ts'
import { requireFileName } from '../../domain/names.ts'
import type { DocumentRecord, FileRecord } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { blobId, confirmBlob, expectRelease, referBlob, releaseBlob } from './blobs.ts'

/**
 * Large uploads that are stored at once, each of which holds its body several times over. The others wait,
 * organizations by turns.
 */
const LARGE_UPLOADS = 4
/** Characters of base64 from which an upload is large; smaller ones take no more memory than other requests. */
const LARGE_CHARACTERS = 1_048_576
/** Large uploads of one organization that wait: no more bodies are read of it at once. */
const MAX_WAITING = 64
/** As long as a body waits to be read. */
const MAX_WAIT_MS = 10_000
const places = new FairPlaces(LARGE_UPLOADS, MAX_WAITING)

/** Most bytes of one download piece. */
const MAX_PIECE_BYTES = 1_048_576
const FILE_ID = /^file_/

/**
 * Stores a file that documents can be made of, or sound for workflows.
 * @throws {KisError} `unsupported_file_type`, `payload_too_large`, `storage_quota_exceeded`, `invalid_request` for
 * base64 that is not, `service_unavailable` for a large one that waited too long; nothing is kept.
 */
export async function uploadFile(
  deps: Deps,
  context: LinkContext,
  input: { readonly name: string; readonly contentBase64: string },
): Promise<FileRecord> {
  const principal = requireScope(context.caller, 'knowledge:write')
  const { store, parser, ids, clock } = deps
  const name = requireFileName(input.name, 'input.name')
  const leave = input.contentBase64.length < LARGE_CHARACTERS ? undefined : await takePlace(principal.organizationId, context.signal)
  try {
    const bytes = decodeBase64(input.contentBase64, principal.plan.maxFileBytes, 'input.contentBase64')
    const mediaType = parser.sniff(bytes, name)
    requireUse(mediaType)
    const id = ids('file')
    const blob = await referBlob(deps, principal, id, bytes)
    const file: FileRecord = {
      _id: id,
      organizationId: principal.organizationId,
      name,
      mediaType,
      sha256: blob._id.slice(-64),
      sizeBytes: bytes.length,
      attachments: {},
      attachmentCount: 0,
      createdAt: clock.now(),
    }
    await store.files.insertOne(file)
    if (!(await confirmBlob(deps, blob, id))) {
      await store.files.findOneAndDelete({ _id: id })
      throw new ServiceUnavailable('The file storage')
    }
    return file
  } finally {
    leave?.()
  }
}

/**
 * What an encrypted document holds only its password tells, so ingestion says that.
 * @throws {KisError} `unsupported_file_type`
 */
function requireUse(mediaType: string): void {
  if (isReadable(mediaType) || isSound(mediaType) || mediaType === ENCRYPTED_OFFICE) return
  const message = `The service cannot read this file. Upload one of these formats: ${FORMAT_LIST}; or sound for a workflow.`
  throw new KisError('unsupported_file_type', message, { param: 'input.contentBase64' })
}

/** @throws {KisError} `service_unavailable` */
async function takePlace(organizationId: string, signal: AbortSignal): Promise<() => void> {
  const late = AbortSignal.timeout(MAX_WAIT_MS)
  return places.take(organizationId, AbortSignal.any([signal, late])).catch((error) => {
    if (!late.aborted && !(error instanceof NoPlace)) throw error
    throw new KisError('service_unavailable', 'Too many large uploads are under way. Try again.', { retryAfterMs: 1_000 })
  })
}

/** @throws {KisError} `in_use` while a document is made from it, with the documents' ids. */
export async function deleteFile(deps: Deps, context: LinkContext, id: string): Promise<void> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  const file = await getFile(deps, organizationId, id)
  await dropAbsentAttachments(deps, file)
  const blob = blobId(organizationId, file.sha256)
  await expectRelease(deps, blob, id)
  const deleted = await deps.store.files.findOneAndDelete({ _id: id, organizationId, attachmentCount: 0 })
  if (!deleted) {
    const { attachments } = await getFile(deps, organizationId, id)
    throw new KisError(
      'in_use',
      `The file is attached as ${Object.keys(attachments).slice(0, 10).join(', ')}; delete these documents first.`,
    )
  }
  await releaseBlob(deps, blob, id)
}

/** @throws {NotFound} also for another organization's. */
export async function getFile(
  { store }: Pick<Deps, 'store'>,
  organizationId: string,
  id: string,
  param: string | null = null,
): Promise<FileRecord> {
  const file = await store.files.findOne({ _id: id, organizationId })
  if (!file) throw new NotFound('file', id, param)
  return file
}

/** Of the caller's organization; null when there is none. */
export async function findFile({ store }: Pick<Deps, 'store'>, { caller }: LinkContext, id: string): Promise<FileRecord | null> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  return store.files.findOne({ _id: id, organizationId })
}

/** The caller's organization's. */
export async function listFiles(
  { store }: Pick<Deps, 'store'>,
  { caller }: LinkContext,
  page: OrderedPage,
): Promise<Connection<FileRecord>> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  return listById(store.files, { organizationId }, page, FILE_ID)
}

export async function readFilePiece(
  deps: Deps,
  context: LinkContext,
  { id, offset, length }: { readonly id: string; readonly offset: number; readonly length: number },
): Promise<{ readonly file: FileRecord; readonly bytes: Uint8Array }> {
  const { organizationId } = requireScope(context.caller, 'knowledge:read')
  if (!Number.isSafeInteger(offset) || offset < 0)
    throw new KisError('integer_below_min_value', 'The offset is a whole number from 0.', { param: 'offset' })
  if (length < 1) throw new KisError('integer_below_min_value', 'The length is at least 1.', { param: 'length' })
  if (length > MAX_PIECE_BYTES)
    throw new KisError('integer_above_max_value', `The length is at most ${MAX_PIECE_BYTES}.`, { param: 'length' })
  const file = await getFile(deps, organizationId, id)
  return { file, bytes: await readBytes(deps, file, { offset, length }) }
}

/** A file's bytes: the whole, or a range, of which there is less at the end. */
export async function readBytes(
  { store, blobs }: Pick<Deps, 'store' | 'blobs'>,
  file: FileRecord,
  range?: { readonly offset: number; readonly length: number },
): Promise<Uint8Array> {
  if (file.sizeBytes === 0) return new Uint8Array()
  const blob = await store.blobs.findOne({ _id: blobId(file.organizationId, file.sha256) })
  const bytes = blob && (await blobs.get(blob.bytesKey, range))
  if (bytes) return bytes
  await getFile({ store }, file.organizationId, file._id)
  throw new Error(`the bytes of ${file._id} are missing`)
}

/** An attachment whose document was never recorded was left by a crash between the two writes. */
async function dropAbsentAttachments({ store }: Deps, file: FileRecord): Promise<void> {
  for (const documentId of Object.keys(file.attachments)) {
    if (!(await store.documents.findOne({ _id: documentId }))) await detachFile(store, file._id, documentId)
  }
}

/** The file that a document is made from; null when the attachment is gone, and the file perhaps with it. */
export async function findAttachedFile(store: Deps['store'], { _id, fileId }: DocumentRecord): Promise<FileRecord | null> {
  const file = await store.files.findOne({ _id: fileId })
  return file && _id in file.attachments ? file : null
}

export async function detachFile(store: Deps['store'], fileId: string, documentId: string): Promise<void> {
  const attachment = `attachments.${documentId}`
  await store.files.findOneAndUpdate(
    { _id: fileId, [attachment]: { $gte: '' } },
    { $unset: { [attachment]: '' }, $inc: { attachmentCount: -1 } },
  )
}
