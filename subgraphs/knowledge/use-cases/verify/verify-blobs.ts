import { createHash } from 'node:crypto'
import { type Caller, requireScope } from '../../../common/identity/principal.ts'
import { decodeScanCursor, encodeScanCursor } from '../../../common/link/scan-cursor.ts'
import type { BlobRecord, DocumentRecord } from '../../domain/records.ts'
import { BlobCorrupted } from '../../ports/blob-store.ts'
import { textKey } from '../chunk-index/stored-chunks.ts'
import type { Deps } from '../deps.ts'
import { readBlob } from '../files/pieces.ts'

/**
 * Maximum records per page, and the bytes after which a page ends early. Hashing them takes some tenths of a second.
 */
const PAGE = 100
const PAGE_BYTES = 64 * 1024 * 1024
/** Bytes per read. Hashing them blocks the event loop for at most 2 ms. */
const READ_BYTES = 1024 * 1024
const MAX_FILE_IDS = 20

const BLOB_FINDING_KINDS = ['missing', 'damaged'] as const

/** A defect of stored bytes. */
interface Fault {
  readonly kind: (typeof BLOB_FINDING_KINDS)[number]
  readonly detail: string
}

/** Corrupted or missing bytes of files or of a text. */
export interface BlobFinding extends Fault {
  readonly organizationId: string
  /** The first `MAX_FILE_IDS` files with this content. Empty for a text. */
  readonly fileIds: readonly string[]
  /** The document of a text. Null for the content of files. */
  readonly documentId: string | null
}

interface BlobVerification {
  readonly blobs: number
  readonly texts: number
  readonly findings: readonly BlobFinding[]
  /** Cursor of the next page. Null: nothing is left. */
  readonly next: string | null
}

interface BlobScanCursor {
  readonly at: 'blobs' | 'texts'
  readonly after: string
}

type VerifyDeps = Pick<Deps, 'store' | 'blobs'>

/**
 * Verifies one page of stored bytes across all organizations: first contents of files, then texts of ready documents.
 * Compares their checksums, if they have one. Bytes that are being uploaded, ingested or deleted are not findings.
 * Repeatable. Changes nothing.
 * @throws {KisError} `permission_denied` if the caller is not an operator.
 * @throws {KisError} `invalid_request` if `after` is not a cursor of this query.
 * @throws {KisError} `service_unavailable` if a store cannot be reached.
 */
export async function verifyBlobs(deps: VerifyDeps, caller: Caller | null, after: string | null): Promise<BlobVerification> {
  requireScope(caller, 'operator')
  const cursor: BlobScanCursor = after === null ? { at: 'blobs', after: '' } : decodeScanCursor(after, isCursor, 'after')
  const list = cursor.at === 'blobs' ? deps.store.blobs : deps.store.documents
  const records = await list.find({ _id: { $gt: cursor.after } }, { sort: { _id: 1 }, limit: PAGE })
  const findings: BlobFinding[] = []
  let read = 0
  let looked = 0
  let last = 0
  for (; last < records.length && read < PAGE_BYTES; last++) {
    const judged = await judge(deps, cursor.at, records[last]!)
    if (!judged) continue
    looked++
    read += judged.sizeBytes
    if (judged.finding) findings.push(judged.finding)
  }
  const isOver = last === records.length && records.length < PAGE
  const next: BlobScanCursor | null = !isOver
    ? { ...cursor, after: records[last - 1]!._id }
    : cursor.at === 'blobs'
      ? { at: 'texts', after: '' }
      : null
  const [blobs, texts] = cursor.at === 'blobs' ? [looked, 0] : [0, looked]
  return { blobs, texts, findings, next: next && encodeScanCursor(next) }
}

function isCursor({ at, after }: Readonly<Record<string, unknown>>): boolean {
  return (at === 'blobs' || at === 'texts') && typeof after === 'string'
}

/** Undefined: the record needs no bytes. */
type Judged = { readonly sizeBytes: number; readonly finding: BlobFinding | null } | undefined

function judge(deps: VerifyDeps, at: BlobScanCursor['at'], record: BlobRecord | DocumentRecord): Promise<Judged> {
  return at === 'blobs' ? judgeBlob(deps, record as BlobRecord) : judgeText(deps, record as DocumentRecord)
}

async function judgeBlob({ store, blobs }: VerifyDeps, blob: BlobRecord): Promise<Judged> {
  if (!isStored(blob)) return undefined
  const { _id, organizationId, sizeBytes, bytesKey } = blob
  const { fault } = await readBytes(blobs, blob, { sizeBytes, sha256: _id.slice(-64) })
  if (!fault) return { sizeBytes, finding: null }
  // The blob may have been deleted since.
  const again = await store.blobs.findOne({ _id, bytesKey })
  if (!again || !isStored(again)) return undefined
  const fileIds = Object.keys(again.references).slice(0, MAX_FILE_IDS)
  return { sizeBytes, finding: { ...fault, organizationId, fileIds, documentId: null } }
}

/** Whether the bytes must exist. Those of a running upload may be missing, and an empty file has none. */
function isStored({ dying, sizeBytes, references }: BlobRecord): boolean {
  return !dying && sizeBytes > 0 && Object.values(references).includes(0)
}

async function judgeText({ store, blobs }: VerifyDeps, document: DocumentRecord): Promise<Judged> {
  const { _id, organizationId, listed, status, liveGeneration, textSha256 } = document
  if (!listed || status !== 'ready' || liveGeneration === null) return undefined
  const { fault, sizeBytes } = await readBytes(blobs, { bytesKey: textKey(_id, liveGeneration) }, { sha256: textSha256 })
  // The document may have been deleted or ingested again since.
  const isSame = !fault || (await store.documents.findOne({ _id, listed: true, status: 'ready', liveGeneration })) !== null
  if (!isSame) return undefined
  return { sizeBytes, finding: fault && { ...fault, organizationId, fileIds: [], documentId: _id } }
}

/** Reads and hashes all bytes in steps of `READ_BYTES`. */
async function readBytes(
  blobs: Deps['blobs'],
  blob: Pick<BlobRecord, 'bytesKey' | 'pieces'>,
  expected: { readonly sizeBytes?: number; readonly sha256: string | undefined },
): Promise<{ readonly sizeBytes: number; readonly fault: Fault | null }> {
  const hash = createHash('sha256')
  let sizeBytes = 0
  const corrupted = (detail: string) => ({ sizeBytes, fault: { kind: 'damaged', detail } as const })
  for (;;) {
    let bytes: Uint8Array | null
    try {
      bytes = await readBlob(blobs, blob, { offset: sizeBytes, length: READ_BYTES })
    } catch (error) {
      if (error instanceof BlobCorrupted) return corrupted('parts of the bytes cannot be read')
      throw error
    }
    if (!bytes) return { sizeBytes, fault: { kind: 'missing', detail: 'the bytes are missing' } }
    hash.update(bytes)
    sizeBytes += bytes.length
    if (bytes.length < READ_BYTES) break
  }
  if (expected.sizeBytes !== undefined && sizeBytes !== expected.sizeBytes)
    return corrupted(`${sizeBytes} of ${expected.sizeBytes} bytes are stored`)
  if (expected.sha256 !== undefined && hash.digest('hex') !== expected.sha256) return corrupted('the SHA-256 of the bytes differs')
  return { sizeBytes, fault: null }
}
