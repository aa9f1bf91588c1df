import { MAX_INLINE_FILE_BYTES } from '../../../common/catalog/plan.ts'
import { listSifted, type NameFilter, nameTest, type SiftBudget, type SortedPage } from '../../../common/documents/lists.ts'
import { KisError, NotFound, ServiceUnavailable } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { Connection } from '../../../common/link/connection.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { CapacityExceeded, FairSemaphore } from '../../../common/process/fair-semaphore.ts'
import { decodeBase64 } from '../../domain/base64.ts'
import { AUDIO_LIST, ENCRYPTED_OFFICE, FORMAT_LIST, IMAGE_LIST, isAudio, isImage, isReadable } from '../../domain/media-types.ts'
import { requireFileName } from '../../domain/names.ts'
import type { DocumentRecord, FileRecord } from '../../domain/records.ts'
import type { StreamedFile } from '../../ports/document-parser.ts'
import type { Deps } from '../deps.ts'
import { blobId, confirmBlob, expectRelease, referBlob, releaseBlob } from './blobs.ts'
import { readBlob, streamBlob } from './pieces.ts'
import { LARGE_FILE_BYTES, sampleOf } from './sample.ts'

/**
 * Maximum concurrent large uploads. Each has several copies of its body in memory. Others wait and are served round
 * robin by organization.
 */
const LARGE_UPLOADS = 4
/**
 * An upload with at least this many base64 characters is large. A smaller one takes no more memory than other requests.
 */
const LARGE_CHARACTERS = 1_048_576
/** Maximum waiting large uploads per organization, as in `large-bodies.ts`. */
const MAX_WAITING = 64
/** Maximum wait of a large upload, as in `large-bodies.ts`. */
const MAX_WAIT_MS = 10_000
const permits = new FairSemaphore(LARGE_UPLOADS, MAX_WAITING)

/** Maximum piece of a download, in bytes. */
const MAX_PIECE_BYTES = 1_048_576
/** Maximum documents per file. */
const MAX_ATTACHMENTS = 1_000

/**
 * Stores a file for documents. Some formats need OCR or a speech model. Nothing is stored if it throws.
 * @throws {KisError} `unsupported_file_type` if the service cannot use the format.
 * @throws {KisError} `payload_too_large` if the file exceeds the limit of the plan or of a request.
 * @throws {KisError} `storage_quota_exceeded` if the plan has no room for the file.
 * @throws {KisError} `invalid_request` if the content is not base64, or the name is invalid.
 * @throws {KisError} `service_unavailable` if a large upload waited too long, or the file storage failed.
 */
export async function uploadFile(
  deps: Deps,
  context: LinkContext,
  input: { readonly name: string; readonly contentBase64: string },
): Promise<FileRecord> {
  const principal = requireScope(context.caller, 'knowledge:write')
  const name = requireFileName(input.name, 'input.name')
  const release = input.contentBase64.length < LARGE_CHARACTERS ? undefined : await acquirePermit(principal.organizationId, context.signal)
  try {
    const maxBytes = Math.min(principal.plan.maxFileBytes, MAX_INLINE_FILE_BYTES)
    const bytes = decodeBase64(input.contentBase64, maxBytes, 'input.contentBase64')
    return await storeFile(deps, principal, { name, bytes, param: 'input.contentBase64' })
  } finally {
    release?.()
  }
}

/** Stores a file whose bytes are in memory. Throws like `uploadFile`, with `param` as the input's field. */
export async function storeFile(
  deps: Deps,
  principal: Principal,
  file: { readonly id?: string; readonly name: string; readonly bytes: Uint8Array; readonly param: string },
): Promise<FileRecord> {
  const { id = deps.ids('file'), name, bytes, param } = file
  const mediaType = deps.parser.sniff(bytes, name)
  requireUse(mediaType, param)
  return recordFile(deps, principal, { _id: id, name, mediaType }, bytes)
}

/**
 * Stores and counts the bytes of a file, and records it.
 * @throws {KisError} `storage_quota_exceeded` if the plan has no room for the file.
 * @throws {ServiceUnavailable} if the file storage failed.
 */
export async function recordFile(
  deps: Deps,
  principal: Principal,
  facts: Pick<FileRecord, '_id' | 'name' | 'mediaType' | 'partOf'>,
  bytes: Uint8Array,
): Promise<FileRecord> {
  const { store, clock } = deps
  const blob = await referBlob(deps, principal, facts._id, bytes)
  const file: FileRecord = {
    ...facts,
    organizationId: principal.organizationId,
    sha256: blob._id.slice(-64),
    sizeBytes: bytes.length,
    attachments: {},
    attachmentCount: 0,
    createdAt: clock.now(),
  }
  await store.files.insertOne(file)
  if (await confirmBlob(deps, blob, facts._id)) return file
  await store.files.findOneAndDelete({ _id: facts._id })
  throw new ServiceUnavailable('The file storage')
}

/** Deletes a file that was unpacked from another one, unless documents use it. Repeatable. */
export async function dropUnpackedFile(
  deps: Deps,
  { organizationId, fileId }: Pick<DocumentRecord, 'organizationId' | 'fileId'>,
): Promise<void> {
  const file = await deps.store.files.findOne({ _id: fileId, organizationId })
  if (!file?.partOf || file.attachmentCount > 0) return
  await dropUnattached(deps, file)
}

/**
 * Refuses a file that no use case can read. Accepts an encrypted Office document, because its format is unknown without
 * the password. Ingestion reports the missing password.
 * @throws {KisError} `unsupported_file_type` if the service cannot use the format.
 */
export function requireUse(mediaType: string, param: string | null): void {
  if (isReadable(mediaType) || isImage(mediaType) || isAudio(mediaType) || mediaType === ENCRYPTED_OFFICE) return
  const message = `The service cannot read this file. Upload one of these formats: ${FORMAT_LIST}; an image for OCR (${IMAGE_LIST}); or audio (${AUDIO_LIST}).`
  throw new KisError('unsupported_file_type', message, { param })
}

/**
 * Acquires a permit for a large upload, and returns the function that releases it.
 * @throws {KisError} `service_unavailable` if too many uploads wait, or the wait was too long.
 */
async function acquirePermit(organizationId: string, signal: AbortSignal): Promise<() => void> {
  const late = AbortSignal.timeout(MAX_WAIT_MS)
  return permits.acquire(organizationId, AbortSignal.any([signal, late])).catch((error) => {
    if (!late.aborted && !(error instanceof CapacityExceeded)) throw error
    throw new KisError('service_unavailable', 'Too many large uploads are in progress. Try again.', { retryAfterMs: 1_000 })
  })
}

/**
 * Deletes a file and, with its last reference, the stored bytes.
 * @throws {NotFound} if the organization has no such file.
 * @throws {KisError} `in_use` if documents use the file. The message lists their IDs.
 */
export async function deleteFile(deps: Deps, context: LinkContext, id: string): Promise<void> {
  const { organizationId } = requireScope(context.caller, 'knowledge:write')
  const file = await getFile(deps, organizationId, id)
  await dropAbsentAttachments(deps, file)
  if (!(await dropUnattached(deps, file))) {
    const { attachments } = await getFile(deps, organizationId, id)
    throw new KisError(
      'in_use',
      `The file is attached as ${Object.keys(attachments).slice(0, 10).join(', ')}; delete these documents first.`,
    )
  }
}

/** Deletes a file that the service created. Returns false if documents still use it. Repeatable. */
export async function dropFile(deps: Deps, organizationId: string, id: string): Promise<boolean> {
  const file = await deps.store.files.findOne({ _id: id, organizationId })
  if (!file) return true
  await dropAbsentAttachments(deps, file)
  return (await dropUnattached(deps, file)) || !(await deps.store.files.findOne({ _id: id, organizationId }))
}

/** Deletes a file of an erased organization, unless documents still use it. Repeatable. */
export async function eraseFile(deps: Deps, file: FileRecord): Promise<void> {
  await dropAbsentAttachments(deps, file)
  await dropUnattached(deps, file)
}

/** Deletes a file and, with its last reference, its bytes. Returns false if documents use it. */
async function dropUnattached(deps: Deps, { _id, organizationId, sha256 }: FileRecord): Promise<boolean> {
  const blob = blobId(organizationId, sha256)
  await expectRelease(deps, blob, _id)
  if (!(await deps.store.files.findOneAndDelete({ _id, organizationId, attachmentCount: 0 }))) return false
  await releaseBlob(deps, blob, _id)
  return true
}

/**
 * Returns a file of the organization.
 * @throws {NotFound} if the organization has no such file.
 */
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

/** Returns a file of the caller's organization, or null if there is none. */
export async function findFile({ store }: Pick<Deps, 'store'>, { caller }: LinkContext, id: string): Promise<FileRecord | null> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  return store.files.findOne({ _id: id, organizationId })
}

/** Lists the files of the caller's organization. */
export async function listFiles(
  { store }: Pick<Deps, 'store'>,
  { caller }: LinkContext,
  { filter, sortBy, ...page }: SortedPage & { readonly filter?: NameFilter | null },
  sifting: SiftBudget,
): Promise<Connection<FileRecord>> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  const isNamed = nameTest(filter?.nameContains)
  return listSifted(
    store.files,
    {
      filter: { organizationId },
      idPrefix: 'file',
      since: filter?.since,
      until: filter?.until,
      matches: isNamed && (({ name }) => isNamed(name)),
      sifting,
      sortBy: sortBy === 'name' ? 'name' : null,
    },
    page,
  )
}

/**
 * Reads at most `MAX_PIECE_BYTES` bytes of a file from `offset`. The piece is shorter than `length` at the end of the
 * file.
 * @throws {NotFound} if the organization has no such file.
 * @throws {KisError} `integer_below_min_value` or `integer_above_max_value` if the offset or the length is out of
 * range.
 */
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

/** Reads all bytes of a file, or a range. A range beyond the end is truncated. */
export async function readBytes(
  { store, blobs }: Pick<Deps, 'store' | 'blobs'>,
  file: FileRecord,
  range?: { readonly offset: number; readonly length: number },
): Promise<Uint8Array> {
  if (file.sizeBytes === 0) return new Uint8Array()
  const blob = await store.blobs.findOne({ _id: blobId(file.organizationId, file.sha256) })
  const bytes = blob && (await readBlob(blobs, blob, range))
  if (bytes) return bytes
  throw await bytesLost(store, file)
}

/** Opens a file for the parser: a small one as bytes, a large one as a stream. */
export async function openFile({ store, blobs }: Pick<Deps, 'store' | 'blobs'>, file: FileRecord): Promise<Uint8Array | StreamedFile> {
  const { sizeBytes } = file
  if (sizeBytes <= LARGE_FILE_BYTES) return readBytes({ store, blobs }, file)
  const blob = await store.blobs.findOne({ _id: blobId(file.organizationId, file.sha256) })
  if (!blob) throw await bytesLost(store, file)
  const sample = await sampleOf(sizeBytes, (range) => readBytes({ store, blobs }, file, range))
  return { sizeBytes, sample, stream: () => streamBlob(blobs, blob, () => bytesLost(store, file)) }
}

/** Returns the error for missing bytes: the file was deleted meanwhile, or the store has lost its bytes. */
export async function bytesLost(store: Deps['store'], { organizationId, _id }: FileRecord): Promise<Error> {
  await getFile({ store }, organizationId, _id)
  return new Error(`the bytes of ${_id} are missing`)
}

/** Removes attachments of documents that do not use the file. A crash between two writes leaves them behind. */
async function dropAbsentAttachments({ store }: Deps, file: FileRecord): Promise<void> {
  for (const documentId of Object.keys(file.attachments)) {
    const document = await store.documents.findOne({ _id: documentId })
    const used = [document?.fileId, document?.replacement?.fileId, document?.job && document.versions?.at(-1)?.fileId]
    if (!used.includes(file._id)) await detachFile(store, file._id, documentId)
  }
}

/** Returns the file of a document. Returns null if the file is gone or is no longer attached to the document. */
export async function findAttachedFile(
  store: Deps['store'],
  { _id, fileId }: Pick<DocumentRecord, '_id' | 'fileId'>,
): Promise<FileRecord | null> {
  const file = await store.files.findOne({ _id: fileId })
  return file && _id in file.attachments ? file : null
}

/**
 * Records that a document uses a file. Repeatable.
 * @throws {KisError} `invalid_request` if the file has the maximum number of documents.
 * @throws {NotFound} if the file is gone.
 */
export async function attachFile(
  { store }: Pick<Deps, 'store'>,
  { _id, organizationId }: FileRecord,
  documentId: string,
  collectionId: string,
): Promise<void> {
  const attached = await store.files.findOneAndUpdate(
    { _id, organizationId, attachmentCount: { $lt: MAX_ATTACHMENTS }, [`attachments.${documentId}`]: null },
    { $set: { [`attachments.${documentId}`]: collectionId }, $inc: { attachmentCount: 1 } },
  )
  if (attached) return
  const { attachments } = await getFile({ store }, organizationId, _id, 'input.fileId')
  if (documentId in attachments) return
  throw new KisError('invalid_request', `The file has ${MAX_ATTACHMENTS} documents, which is the limit. Delete one of them first.`, {
    param: 'input.fileId',
  })
}

/** Removes a document's attachment from a file. Repeatable. */
export async function detachFile(store: Deps['store'], fileId: string, documentId: string): Promise<void> {
  const attachment = `attachments.${documentId}`
  await store.files.findOneAndUpdate(
    { _id: fileId, [attachment]: { $gte: '' } },
    { $unset: { [attachment]: '' }, $inc: { attachmentCount: -1 } },
  )
}
