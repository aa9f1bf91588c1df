import { createHash } from 'node:crypto'
import { type Caller, requireScope } from '../../../common/identity/principal.ts'
import { decodePlace, encodePlace } from '../../../common/link/place-cursor.ts'
import type { BlobRecord, DocumentRecord } from '../../domain/records.ts'
import { BlobDamaged } from '../../ports/blob-store.ts'
import { textKey } from '../chunk-index/kept-passages.ts'
import type { Deps } from '../deps.ts'

/** Records of one page; and the bytes after which it ends early, some tenths of a second of hashing. */
const PAGE = 100
const PAGE_BYTES = 64 * 1024 * 1024
/** Of one read: the loop hashes it within 2 ms. */
const READ_BYTES = 1024 * 1024
const MAX_FILE_IDS = 20

export const BLOB_FINDING_KINDS = ['missing', 'damaged'] as const

/** What is wrong with bytes, in words. */
interface Fault {
  readonly kind: (typeof BLOB_FINDING_KINDS)[number]
  readonly detail: string
}

export interface BlobFinding extends Fault {
  readonly organizationId: string
  /** Files with this content, the first of them; none for a text. */
  readonly fileIds: readonly string[]
  /** Whose text it is; null for the content of files. */
  readonly documentId: string | null
}

export interface BlobVerification {
  readonly blobs: number
  readonly texts: number
  readonly findings: readonly BlobFinding[]
  /** Where the next page begins; null: nothing is left. */
  readonly next: string | null
}

interface Place {
  readonly at: 'blobs' | 'texts'
  readonly after: string
}

type VerifyDeps = Pick<Deps, 'store' | 'blobs'>

/**
 * Reads one page of what is stored, over all organizations: the contents of files, then the texts of ready documents,
 * each against its checksum as far as it has one. What is being uploaded, ingested or deleted meanwhile is no
 * difference. Repeatable; nothing is changed.
 * @throws {KisError} `permission_denied`; `invalid_request`: `after` is no place; `service_unavailable`.
 */
export async function verifyBlobs(deps: VerifyDeps, caller: Caller | null, after: string | null): Promise<BlobVerification> {
  requireScope(caller, 'operator')
  const place: Place = after === null ? { at: 'blobs', after: '' } : decodePlace(after, isPlace, 'after')
  const list = place.at === 'blobs' ? deps.store.blobs : deps.store.documents
  const records = await list.find({ _id: { $gt: place.after } }, { sort: { _id: 1 }, limit: PAGE })
  const findings: BlobFinding[] = []
  let read = 0
  let looked = 0
  let last = 0
  for (; last < records.length && read < PAGE_BYTES; last++) {
    const judged = await judge(deps, place.at, records[last]!)
    if (!judged) continue
    looked++
    read += judged.sizeBytes
    if (judged.finding) findings.push(judged.finding)
  }
  const isOver = last === records.length && records.length < PAGE
  const next: Place | null = !isOver
    ? { ...place, after: records[last - 1]!._id }
    : place.at === 'blobs'
      ? { at: 'texts', after: '' }
      : null
  const [blobs, texts] = place.at === 'blobs' ? [looked, 0] : [0, looked]
  return { blobs, texts, findings, next: next && encodePlace(next) }
}

function isPlace({ at, after }: Readonly<Record<string, unknown>>): boolean {
  return (at === 'blobs' || at === 'texts') && typeof after === 'string'
}

/** Undefined: nothing of the record has to be there. */
type Judged = { readonly sizeBytes: number; readonly finding: BlobFinding | null } | undefined

function judge(deps: VerifyDeps, at: Place['at'], record: BlobRecord | DocumentRecord): Promise<Judged> {
  return at === 'blobs' ? judgeBlob(deps, record as BlobRecord) : judgeText(deps, record as DocumentRecord)
}

async function judgeBlob({ store, blobs }: VerifyDeps, blob: BlobRecord): Promise<Judged> {
  if (!isStored(blob)) return undefined
  const { _id, organizationId, sizeBytes, bytesKey } = blob
  const { fault } = await readBytes(blobs, bytesKey, { sizeBytes, sha256: _id.slice(-64) })
  if (!fault) return { sizeBytes, finding: null }
  // It may have been deleted meanwhile.
  const again = await store.blobs.findOne({ _id, bytesKey })
  if (!again || !isStored(again)) return undefined
  const fileIds = Object.keys(again.references).slice(0, MAX_FILE_IDS)
  return { sizeBytes, finding: { ...fault, organizationId, fileIds, documentId: null } }
}

/**
 * Whether the bytes must be there: those of an upload under way may be missing, and nothing is put for an empty file.
 */
function isStored({ dying, sizeBytes, references }: BlobRecord): boolean {
  return !dying && sizeBytes > 0 && Object.values(references).includes(0)
}

async function judgeText({ store, blobs }: VerifyDeps, document: DocumentRecord): Promise<Judged> {
  const { _id, organizationId, listed, status, liveGeneration, textSha256 } = document
  if (!listed || status !== 'ready' || liveGeneration === null) return undefined
  const { fault, sizeBytes } = await readBytes(blobs, textKey(_id, liveGeneration), { sha256: textSha256 })
  // It may have been deleted or ingested again meanwhile.
  const isSame = !fault || (await store.documents.findOne({ _id, listed: true, status: 'ready', liveGeneration })) !== null
  if (!isSame) return undefined
  return { sizeBytes, finding: fault && { ...fault, organizationId, fileIds: [], documentId: _id } }
}

/** Reads them all, piece by piece. */
async function readBytes(
  blobs: Deps['blobs'],
  key: string,
  expected: { readonly sizeBytes?: number; readonly sha256: string | undefined },
): Promise<{ readonly sizeBytes: number; readonly fault: Fault | null }> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  const damaged = (detail: string) => ({ sizeBytes, fault: { kind: 'damaged', detail } as const })
  for (;;) {
    let bytes: Uint8Array | null
    try {
      bytes = await blobs.get(key, { offset: sizeBytes, length: READ_BYTES })
    } catch (error) {
      if (error instanceof BlobDamaged) return damaged('parts of the bytes cannot be read')
      throw error
    }
    if (!bytes) return { sizeBytes, fault: { kind: 'missing', detail: 'the bytes are not there' } }
    hash.update(bytes)
    sizeBytes += bytes.length
    if (bytes.length < READ_BYTES) break
  }
  if (expected.sizeBytes !== undefined && sizeBytes !== expected.sizeBytes)
    return damaged(`${sizeBytes} of ${expected.sizeBytes} bytes are there`)
  if (expected.sha256 !== undefined && hash.digest('hex') !== expected.sha256) return damaged('the bytes have another SHA-256')
  return { sizeBytes, fault: null }
}
