import { createHash } from 'node:crypto'
import type { Principal } from '../../../common/identity/principal.ts'
import { toPlain } from '../../../common/plain-text.ts'
import { isAudio, isImage, isReadable, MAX_AUDIO_BYTES, ZIP } from '../../domain/media-types.ts'
import type { CollectionRecord, DocumentRecord, FileRecord } from '../../domain/records.ts'
import { type InnerFile, ParseFailure, type StreamedFile } from '../../ports/document-parser.ts'
import type { Deps } from '../deps.ts'
import { recordFile } from '../files/files.ts'
import { hideAndDelete } from './delete-now.ts'
import { insertPart } from './documents.ts'

/** The files of one document that become documents. A warning names the others. */
const MAX_FILES = 1_000
/** A message may be attached to a message, and that to another one. */
const MAX_DEPTH = 3
/** The names that the record keeps of files that are not read. */
const MAX_UNREAD_NAMES = 1_000
/** The documents that were made after a deletion has listed them: one for each process that has lost the lease. */
const LATE = 10
/** The longest file name. */
const MAX_NAME = 255

/** Whether files inside this document become documents. */
export function isExpandable({ depth = 0, unreadFiles }: DocumentRecord): boolean {
  return depth < MAX_DEPTH && unreadFiles === undefined
}

/**
 * Makes a file and a document of each readable file inside a document's file. They are counted and charged as if they
 * had been uploaded and attached by the same key, and have the same metadata. Repeatable: ids come from the document
 * and the place in it. Returns the names of the files that are not read.
 * @param isOurs whether the worker still has the document
 * @throws {KisError} `storage_quota_exceeded` if the plan has no room for a file.
 * @throws {ParseFailure} if the file cannot be unpacked.
 */
export async function expandDocument(
  deps: Deps,
  principal: Principal,
  {
    document,
    collection,
    ...source
  }: {
    readonly document: DocumentRecord
    readonly collection: CollectionRecord
    readonly file: Uint8Array | StreamedFile
    readonly mediaType: string
  },
  isOurs: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const unread: string[] = []
  let createdCount = 0
  let index = 0
  for await (const inner of deps.parser.unpack(source.file, source.mediaType, signal)) {
    const isCreated = createdCount < MAX_FILES && (await createInnerDocument(deps, principal, { document, collection, inner, index }))
    if (isCreated) createdCount += 1
    else if (unread.length < MAX_UNREAD_NAMES) unread.push(toPlain(inner.name.slice(0, MAX_NAME)))
    index += 1
    // A deletion lists the documents to delete after it has taken the lease.
    if (isCreated && !(await isOurs())) {
      const late = await deps.store.documents.find({ parentId: document._id, listed: true }, { limit: LATE })
      for (const part of late) await hideAndDelete(deps, part)
      throw new ParseFailure('corrupt', 'The document was deleted while it was read.')
    }
  }
  return unread
}

async function createInnerDocument(
  deps: Deps,
  principal: Principal,
  {
    document,
    collection,
    inner,
    index,
  }: {
    readonly document: DocumentRecord
    readonly collection: CollectionRecord
    readonly inner: InnerFile
    readonly index: number
  },
): Promise<boolean> {
  const { bytes } = inner
  if (!bytes || bytes.length === 0 || bytes.length > principal.plan.maxFileBytes) return false
  const name = toFileName(inner.name)
  const mediaType = deps.parser.sniff(bytes, name)
  if (!isDocument(mediaType, bytes.length, collection)) return false
  const _id = buildFileId(document, index)
  const there = await deps.store.files.findOne({ _id })
  const file: FileRecord = there ?? (await recordFile(deps, principal, { _id, name, mediaType, partOf: document._id }, bytes))
  await insertPart(deps, document, collection, file)
  return true
}

/** Whether the collection makes a document of a file inside another one. */
function isDocument(mediaType: string, sizeBytes: number, { ocr, transcriptionModel }: CollectionRecord): boolean {
  if (isImage(mediaType)) return ocr === 'auto'
  if (isAudio(mediaType)) return !!transcriptionModel && sizeBytes <= MAX_AUDIO_BYTES
  return isReadable(mediaType) && mediaType !== ZIP
}

/** The same id each time that the document is expanded. */
function buildFileId({ _id }: DocumentRecord, index: number): string {
  return `file_${createHash('sha256').update(`${_id}/${index}`).digest('hex').slice(0, 32)}`
}

/** The name without folders and hidden characters. */
function toFileName(path: string): string {
  const name = toPlain(path.split(/[/\\]/).at(-1) ?? '')
    .trim()
    .normalize('NFC')
  // The extension tells the format.
  const cut = name.length <= MAX_NAME ? name : `${name.slice(0, MAX_NAME - 20)}${name.slice(-20)}`.toWellFormed()
  return cut === '' || cut === '.' || cut === '..' ? 'file' : cut
}
