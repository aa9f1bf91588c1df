import type { ErrorCode } from '../../../schema/errors.ts'
import type { FairLeasable } from '../../common/documents/fair-jobs.ts'
import type { Telling } from '../../common/events/event-log.ts'
import type { Outline } from './chunking/outline.ts'
import type { CollectionChanges } from './evaluation/changes.ts'
import type { Expected } from './evaluation/ranks.ts'
import type { SearchMode } from './search/fuse.ts'

/**
 * Records of the primary store. Field names are those of the store. Every record has its organization, and queries
 * filter by it.
 */

/** A collection of documents. */
export interface CollectionRecord {
  readonly _id: string
  readonly organizationId: string
  /**
   * Unique in the organization. A collection that is being deleted has its own ID here, so that its code is free at
   * once.
   */
  readonly code: string
  readonly name: string
  readonly description: string | null
  readonly embeddingModel: string
  readonly dimensions: number
  /** The name of the collection's index: see `index-name.ts`. Absent: its own ID. */
  readonly indexName?: string
  /** Set while the collection's chunks are embedded with another model. */
  readonly reembedding?: Reembedded
  /** The model that reranks search results. Absent or null: none. */
  readonly rerankModel?: string | null
  /** The model that transcribes audio. Absent or null: the collection accepts no audio. */
  readonly transcriptionModel?: string | null
  /** Absent in collections of earlier versions, which do not use OCR. */
  readonly ocr?: OcrMode
  /** False once deletion has started: the collection is hidden. */
  readonly listed: boolean
  readonly createdAt: Date
  /** Set during deletion. */
  readonly job?: Job
}

/** The index that is filled beside the one that serves searches. Chunks are deleted from both. */
interface Reembedded {
  readonly id: string
  readonly indexName: string
  /** The worker that waits for the last documents with the former model. No other ingestion starts meanwhile. */
  readonly closedBy?: string
}

/** When pages are recognized by OCR: never (`off`), or if a page has no other text (`auto`). */
export type OcrMode = 'off' | 'auto'

/** An uploaded file. Its bytes are a blob that files with equal content share. */
export interface FileRecord {
  readonly _id: string
  readonly organizationId: string
  readonly name: string
  readonly mediaType: string
  /** The SHA-256 of the content, 64 hexadecimal digits. */
  readonly sha256: string
  readonly sizeBytes: number
  /**
   * The collection of each document created from the file, by the document's ID. `attachmentCount` is their number, for
   * guards.
   */
  readonly attachments: Readonly<Record<string, string>>
  readonly attachmentCount: number
  /** The document from which the file was unpacked. The file is deleted with its last document. */
  readonly partOf?: string
  readonly createdAt: Date
}

/** Some bytes of a file, under their own key in the blob store. */
export interface Piece {
  readonly key: string
  readonly sizeBytes: number
}

/** A resumable upload. */
export interface UploadRecord {
  readonly _id: string
  readonly organizationId: string
  /** The organization, while the upload is open. The organization's limits count these uploads. */
  readonly openOf?: string
  readonly name: string
  /** The total size that the client declared. For a growing upload, the bytes received so far. */
  readonly sizeBytes: number
  /** The client did not declare the size. */
  readonly isGrowing?: true
  /** The total size of the received pieces. */
  readonly offset: number
  readonly pieces: readonly Piece[]
  readonly status: UploadStatus
  /** Opaque to the service. Returned to the client. */
  readonly metadata: string | null
  /** The ID of the resulting file. It is assigned at the start, so that a repeated completion returns the same file. */
  readonly fileId: string
  /** Set at the start of the completion, 64 hexadecimal digits. From then on, the upload accepts no bytes. */
  readonly sha256?: string
  /** When the last step of the completion started. Absent: none is running. */
  readonly completing?: Date
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** A web address whose content is a document of a collection and is fetched again periodically. */
export interface WebSourceRecord {
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  /** Collection and address, so that an address is in a collection once. */
  readonly sourceKey: string
  /** The key whose rules and wallet apply to fetches. */
  readonly apiKeyId: string
  readonly url: string
  readonly metadata: Readonly<Record<string, string | number | boolean>>
  /** Null before the first fetch. */
  readonly documentId: string | null
  /** The file of the previous version. It is deleted once the new version is live. */
  readonly formerFileId: string | null
  /** The file that the content in flight becomes. If its worker dies, this file is an orphan. Null or absent: none. */
  readonly nextFileId?: string | null
  readonly etag: string | null
  readonly lastModified: string | null
  /** The SHA-256 of the last fetched content. */
  readonly sha256: string | null
  readonly refreshSeconds: number | null
  /** When the next automatic fetch is due. */
  readonly refreshAt: Date | null
  /** When a worker checks the record next. Absent: never automatically. */
  readonly dueAt?: Date
  readonly checkedAt: Date | null
  readonly changedAt: Date | null
  /** The message of the last failed fetch. Null: the last fetch succeeded. */
  readonly error: string | null
  /** The reason code of `error`. Absent in records of versions before there were reason codes. */
  readonly errorReason?: WebSourceErrorReason | null
  readonly createdAt: Date
}

export const WEB_SOURCE_ERROR_REASONS = [
  'not_public',
  'unreachable',
  'status',
  'robots_forbid',
  'robots_unreadable',
  'too_large',
  'unsupported_type',
  'unreadable',
  'residency_policy_violation',
  'storage_quota_exceeded',
  'insufficient_quota',
  'key_ended',
  'other',
] as const
export type WebSourceErrorReason = (typeof WEB_SOURCE_ERROR_REASONS)[number]

type UploadStatus = 'open' | 'completed' | 'cancelled'

/** The stored bytes of files with equal content, within one organization. */
export interface BlobRecord {
  /** Organization and SHA-256. */
  readonly _id: string
  readonly organizationId: string
  readonly sizeBytes: number
  /** The key of the bytes. It is unique per record, so that deleting an old record cannot affect a new one. */
  readonly bytesKey: string
  /**
   * The pieces that hold the bytes of a resumable upload: below `bytesKey`, in this order. Absent: all bytes are at
   * `bytesKey`.
   */
  readonly pieces?: readonly Piece[]
  /**
   * The files that use the blob, by ID. The value is the start (ms) of a running upload or deletion, or 0 for an
   * existing file.
   */
  readonly references: Readonly<Record<string, number>>
  readonly referenceCount: number
  /** Bytes that the blob adds to the organization's storage: 0 until the bytes exist, then their size. */
  readonly counted: CountedNumber
  /**
   * True once no file uses the blob. Its bytes and then the record are being deleted. A new upload of the same bytes
   * waits for that.
   */
  readonly dying: boolean
  /**
   * When an upload or deletion last started. The sweep checks old values and unsets them if no operation is running.
   */
  readonly pendingAt?: Date
}

/**
 * A number that is part of a total in the organization's usage. `by` is the change that wrote it: see
 * `use-cases/count-usage.ts`.
 */
export interface CountedNumber {
  readonly value: number
  readonly by: string
}

export type DocumentStatus = 'queued' | 'processing' | 'ready' | 'failed'
type IngestionStage = 'parsing' | 'transcribing' | 'chunking' | 'embedding' | 'indexing'
export const DOCUMENT_ERROR_CODES = [
  'empty',
  'corrupt',
  'password_required',
  'no_text',
  'unsupported_type',
  'limit_exceeded',
  'timeout',
  'poison',
  'embedding_failed',
  'transcription_failed',
  'insufficient_quota',
  'model_not_found',
  'residency_policy_violation',
  'storage_quota_exceeded',
] as const
export type DocumentErrorCode = (typeof DOCUMENT_ERROR_CODES)[number]

/** How far the current stage of an ingestion is, in the units of the stage. */
export interface Progress {
  readonly done: number
  readonly total: number
}

export interface DocumentError {
  readonly code: DocumentErrorCode
  readonly message: string
}

/** The file of a document's next version. Searches find the live version until the next one has been ingested. */
export interface Replacement {
  readonly fileId: string
  readonly sha256: string
  readonly fileName: string
  /** Null: the document's metadata stays unchanged. */
  readonly metadata: DocumentRecord['metadata'] | null
  readonly status: 'queued' | 'processing' | 'failed'
  readonly stage: IngestionStage | null
  readonly progress: Progress | null
  readonly error: DocumentError | null
  /** When the file was attached. */
  readonly createdAt: Date
}

/** A former version of a document. */
export interface DocumentVersion {
  readonly version: number
  readonly fileId: string
  readonly fileName: string
  readonly createdAt: Date
  readonly replacedAt: Date
}

/** Maximum former versions of a document. */
export const MAX_VERSIONS = 20

/** A document of a collection, with the state of its ingestion. */
export interface DocumentRecord extends Telling {
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  readonly fileId: string
  /**
   * Collection and SHA-256 of the live file. In documents of earlier versions: collection and file. Unset when deletion
   * starts, so that the same bytes can be attached again at once.
   */
  readonly attachKey?: string
  /** The client's own ID of the document, unique in the collection. */
  readonly externalId?: string
  /**
   * The key by which a new file finds the document that it replaces: see `version-key.ts`. Unset when deletion starts.
   */
  readonly versionKey?: string
  /** False once deletion has started: the document is hidden. */
  readonly listed: boolean
  /** The key whose allowlist and wallet apply to the ingestion. */
  readonly apiKeyId: string
  /**
   * Who pays for an ingestion that repairs the index, from the repair until the document is ready. The document's own
   * organization has already paid once.
   */
  readonly payer?: { readonly organizationId: string; readonly apiKeyId: string }
  /**
   * The document whose file contains this one's file, such as an archive or a message. This document is deleted with
   * it.
   */
  readonly parentId?: string
  /** Nesting depth: the number of documents that contain this document's file. Absent: none. */
  readonly depth?: number
  /** Embedded files that were skipped. Set after expansion has finished. */
  readonly unreadFiles?: readonly string[]
  /** The speech model that the client chose for this document. Absent: the collection's model. */
  readonly transcriptionModel?: string
  /** The document's name. Initially that of its file. */
  readonly fileName: string
  /** Number of changes of name and metadata. Absent: 0. */
  readonly details?: number
  readonly metadata: Readonly<Record<string, string | number | boolean>>
  readonly status: DocumentStatus
  readonly stage: IngestionStage | null
  readonly progress: Progress | null
  readonly error: DocumentError | null
  /** The file that replaces the live one after its ingestion. Null or absent: none. */
  readonly replacement?: Replacement | null
  /** The number of the live version, and when its file was attached. Absent: the first. */
  readonly version?: number
  readonly versionAt?: Date
  /** The former versions, oldest first, at most `MAX_VERSIONS`. */
  readonly versions?: readonly DocumentVersion[]
  /**
   * The sketch of the live text: see `sketch.ts`. Absent until the document is ready for the first time, and in
   * documents of earlier versions.
   */
  readonly sketch?: string
  readonly warnings: readonly { readonly code: string; readonly message: string; readonly pages: readonly number[] }[]
  readonly pageCount: number | null
  readonly chunkCount: number
  readonly language: string | null
  /** Absent until the document is ready for the first time. */
  readonly outline?: Outline
  /**
   * The SHA-256 of the live text, 64 hexadecimal digits. Absent until the document is ready for the first time, and in
   * documents of earlier versions.
   */
  readonly textSha256?: string
  readonly attempts: number
  /** Identifies the live chunks. Null until the document is ready for the first time. */
  readonly liveGeneration: string | null
  /** The number of the generation that the ingestion writes: 1, plus one per retry. */
  readonly generation: number
  /** Progress of an ingestion without a live version. Absent: nothing was read yet, or the document is ready. */
  readonly readSoFar?: ReadSoFar
  /** Vectors that the document adds to the organization's count. */
  readonly countedVectors: CountedNumber
  /** Chunks that the document adds to its collection's count. */
  readonly countedChunks: CountedNumber
  /**
   * The hold of the running embedding, the tokens of completed batches, the tokens of batches that a limit or deadline
   * of the service ended, the generation, and the index that is filled.
   */
  readonly embedding: {
    readonly holdId: string
    readonly tokens: number
    /** Charged even if the document fails. Absent: none. */
    readonly stoppedTokens?: number
    readonly generation?: number
    readonly indexName?: string
  } | null
  readonly createdAt: Date
  readonly job?: Job
}

/** A test question with known expected chunks. Evaluations of the collection search for it. */
export interface GoldQuestionRecord {
  /** `gq_…` */
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  readonly query: string
  readonly expected: readonly Expected[]
  readonly createdAt: Date
}

/** A named set of search settings that an evaluation compares with others. */
export interface EvaluatedSettings {
  readonly label: string
  readonly mode: SearchMode
  /** In the client's form. */
  readonly filter: unknown
  /** Null: none. Absent: the collection's rerank model. */
  readonly rerankModel?: string | null
  readonly lexicalWeight: number
}

/** A gold question as it was at the start of an evaluation. */
export interface EvaluatedQuestion {
  readonly id: string
  readonly query: string
  readonly expected: readonly Expected[]
}

/** An evaluation of a collection's search: the gold questions, searched with each of the settings. */
export interface EvaluationRecord extends Telling {
  /** `evl_…` */
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  /** The key that pays for the evaluation. */
  readonly apiKeyId: string
  /** The collection, until the evaluation has ended. A unique index allows one running evaluation per collection. */
  readonly openKey?: string
  /** The index that is evaluated. Absent in evaluations of earlier versions. */
  readonly indexName?: string
  /** `EvaluatedSettings[]` as JSON. */
  readonly settings: string
  /** `EvaluatedQuestion[]` as JSON, as they were at the start. */
  readonly questions: string
  /** For each question searched so far, its `Ranks` by each of the settings, as JSON. */
  readonly ranks: string
  readonly status: 'running' | 'completed' | 'failed'
  readonly done: number
  readonly total: number
  /** The charge so far in nano-USD, as a decimal. */
  readonly cost: string
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
  /** The changes for which a watch started it. Absent: a client started it. */
  readonly changes?: CollectionChanges
  /** The largest decrease of a measure without a webhook event, in thousandths. Absent: no webhook event. */
  readonly maxFallThousandths?: number
  /** A `Comparison` as JSON. Absent: there was no comparison. */
  readonly comparison?: string
  readonly startedAt: Date
  readonly endedAt: Date | null
  /** Unset when the evaluation has ended. */
  readonly job?: Job
}

/** Starts evaluations of a collection after changes. */
export interface EvaluationWatchRecord {
  /** The ID of the collection. A collection has at most one watch. */
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  /** The key that pays and whose rules apply. */
  readonly apiKeyId: string
  /** `EvaluatedSettings[]` as JSON. */
  readonly settings: string
  readonly minIntervalSeconds: number
  /** Null: no event. */
  readonly maxFallThousandths: number | null
  /** The sequence of the organization's last event that `changes` counts. */
  readonly position: number
  /** Changes since the start of the last evaluation. */
  readonly changes: CollectionChanges
  /** The number of changes that a worker has seen, and when it saw the last and the first of them. */
  readonly seen: number
  readonly changedAt: Date | null
  readonly waitingSince: Date | null
  /** The evaluation that is being started, and the changes that it covers. */
  readonly starting?: { readonly id: string; readonly changes: CollectionChanges }
  readonly startedAt: Date | null
  /** Why the watch has stopped. Null: it is active. */
  readonly error: EvaluationRecord['error']
  readonly createdAt: Date
}

/** A change of the embedding model for the chunks of a collection. */
export interface ReembeddingRecord extends Telling {
  /** `remb_…` */
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  /** The key that pays. */
  readonly apiKeyId: string
  /** The organization, until the re-embedding has ended. A unique index allows one at a time per organization. */
  readonly openKey?: string
  readonly formerModel: string
  /** The index that serves searches until the swap. */
  readonly formerIndexName: string
  readonly embeddingModel: string
  readonly dimensions: number
  /** The index that the re-embedding fills. */
  readonly indexName: string
  readonly status: 'running' | 'cancelling' | 'completed' | 'failed' | 'cancelled'
  readonly stage: ReembeddingStage | null
  /** The figures of its quote. */
  readonly quoted: { readonly passages: number; readonly tokens: number }
  /** Chunks in the new index, and chunks of the collection as last counted. */
  readonly done: number
  readonly total: number
  /** Tokens embedded so far. */
  readonly tokens: number
  /** The price of a million tokens, and the charges of ended holds. In nano-USD, as decimals. */
  readonly rate: string
  readonly charged: string
  /** The document that is being embedded, and its first unpaid chunk. */
  readonly at: { readonly documentId: string; readonly generation: string; readonly next: number } | null
  /** The open hold: its reserved tokens, and the tokens of the batches so far. */
  readonly hold: { readonly id: string; readonly tokens: number; readonly used: number } | null
  /** Null while it is running. It is set before its index is deleted, so that a crash does not change the outcome. */
  readonly outcome: 'completed' | 'failed' | 'cancelled' | null
  /** Why the re-embedding failed or waits for a retry. */
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
  readonly startedAt: Date
  readonly endedAt: Date | null
  /** Unset when the re-embedding has ended. */
  readonly job?: Job
}

/**
 * `embedding`: chunks get their vectors. `swapping`: running ingestions finish. `tidying`: leftover data is deleted.
 */
type ReembeddingStage = 'embedding' | 'swapping' | 'tidying'

/**
 * A job of a document, a collection, an evaluation or a re-embedding. `settle` writes a changed name and metadata to
 * the document's chunks. `tidy` deletes what a new version has replaced.
 */
export interface Job extends FairLeasable {
  readonly kind: 'ingest' | 'delete' | 'settle' | 'tidy' | 'evaluate' | 'reembed'
  /**
   * Starts of an ingestion since its last recorded outcome or step. More than one means that a worker died during it.
   */
  readonly starts: number
  /** Number of failures that a retry may fix, and the time of the first. */
  readonly failures: number
  readonly firstFailureAt: Date | null
  /** Number of consecutive outages of a required part of the service. An outage is not a failure of the job. */
  readonly outages?: number
}

/** Creates a job that is due at `dueAt`. `weight` is its organization's share in the fair queue. */
export function newJob(kind: Job['kind'], organizationId: string, dueAt: Date, weight = 1): Job {
  const job: Job = { kind, organizationId, dueAt, lease: null, starts: 0, failures: 0, firstFailureAt: null }
  return weight === 1 ? job : { ...job, weight }
}

/** Returns the pending or running replacement, or null. A failed replacement is not pending. */
export function findPending({ status, replacement }: DocumentRecord): Replacement | null {
  return status === 'ready' && replacement && replacement.status !== 'failed' ? replacement : null
}

/**
 * Returns the generation whose chunks searches return, or null. A document that has never been ready exposes the chunks
 * of its first ingestion as they are indexed, page by page. A document whose index is being repaired exposes none until
 * it is ready again.
 */
export function findableGeneration({
  status,
  liveGeneration,
  generation,
}: Pick<DocumentRecord, 'status' | 'liveGeneration' | 'generation'>): string | null {
  if (status === 'ready') return liveGeneration
  return status === 'processing' && liveGeneration === null ? generationName(generation) : null
}

/** The generation whose text is stored, the number of its stored chunks, and the index to which they belong. */
export interface ReadSoFar {
  readonly generation: number
  readonly indexName: string
  readonly chunks: number
}

/** Returns the progress of a running or failed ingestion. Null: nothing was read, or the document is ready. */
export function findReadSoFar({ status, generation, readSoFar }: DocumentRecord): ReadSoFar | null {
  return status !== 'ready' && readSoFar?.generation === generation ? readSoFar : null
}

/** Returns the generation whose text and chunks the document shows, or null. */
export function readableGeneration(document: DocumentRecord): string | null {
  const read = findReadSoFar(document)
  return read ? generationName(read.generation) : document.liveGeneration
}

/** One band of a document's sketch. Documents with an equal key are probably similar. See `sketch.ts`. */
export interface SketchRecord {
  /** Document and band index. */
  readonly _id: string
  readonly organizationId: string
  readonly documentId: string
  /** Collection, band index and band value. */
  readonly key: string
}

/** Returns the job without a lease, queued for the slow workers. Its failures still count. */
export function toSlowJob({ organizationId, ...job }: Job, dueAt: Date): Job {
  return { ...job, slowOrganizationId: organizationId!, dueAt, lease: null, starts: 0 }
}

/** An organization's stored amounts. `marks` are running changes: see `use-cases/count-usage.ts`. */
export interface UsageRecord {
  /** The organization's ID. */
  readonly _id: string
  readonly storageBytes: number
  readonly vectors: number
  /** Chunks of ready documents, by collection ID. */
  readonly chunks: Readonly<Record<string, number>>
  readonly marks: Readonly<Record<string, UsageMark>>
}

/**
 * A change of a counted number, from `from` to `to`. The total includes the change. The record may not include it yet.
 */
export interface UsageMark {
  readonly id: string
  /** The record's `by` before the change. */
  readonly after: string
  readonly from: number
  readonly to: number
  /** When the mark was set, in ms. */
  readonly at: number
}

/** Returns the name of a generation: `g1` for 1. */
export function generationName(number: number): string {
  return `g${number}`
}

/** Returns the number of a generation: 1 for `g1`. */
export function generationNumber(name: string): number {
  return Number(name.slice(1))
}

/** Returns the ID of a chunk. It is deterministic, so that a repeated write overwrites the chunk. */
export function buildChunkId(documentId: string, generation: string, ordinal: number): string {
  return `${documentId.replace('doc_', 'chunk_')}_${generation}_${ordinal}`
}

/** Parses a chunk ID into its document and generation. Returns undefined if it is not a chunk ID. */
export function partsOfChunkId(chunkId: string): { readonly documentId: string; readonly generation: string } | undefined {
  const match = /^chunk_([0-9a-f]{32})_(g\d+)_\d+$/.exec(chunkId)
  return match ? { documentId: `doc_${match[1]}`, generation: match[2]! } : undefined
}
