import type { ErrorCode } from '../../../schema/errors.ts'
import type { FairLeasable } from '../../common/documents/fair-jobs.ts'
import type { Telling } from '../../common/events/event-log.ts'
import type { Outline } from './chunking/outline.ts'
import type { CollectionChanges } from './evaluation/changes.ts'
import type { Expected } from './evaluation/ranks.ts'
import type { SearchMode } from './search/fuse.ts'

/**
 * The records of the primary store. Field names are the store's. Every record names its organization, and is read by
 * it.
 */

export interface CollectionRecord {
  readonly _id: string
  readonly organizationId: string
  /** Unique in the organization. The record's own id once it is being deleted, so that the code is free at once. */
  readonly code: string
  readonly name: string
  readonly description: string | null
  readonly embeddingModel: string
  readonly dimensions: number
  /** The name of its vectors in the chunk index: see `index-name.ts`. Absent: its own id. */
  readonly indexName?: string
  /** Set while its passages are embedded with another model. */
  readonly reembedding?: Reembedded
  /** Orders what its searches find. Absent or null: none. */
  readonly rerankModel?: string | null
  /** Writes down what is said in sound. Absent or null: the collection takes no sound. */
  readonly transcriptionModel?: string | null
  /** Absent in collections of earlier versions, which do not use OCR. */
  readonly ocr?: OcrMode
  /** False as soon as it is deleted: nobody sees it any more. */
  readonly listed: boolean
  readonly createdAt: Date
  /** Set while it is being deleted. */
  readonly job?: Job
}

/** The index that is filled beside the one that searches ask. Chunks are deleted from both. */
interface Reembedded {
  readonly id: string
  readonly indexName: string
  /** The worker that waits for the last documents of the former model. No other document begins meanwhile. */
  readonly closedBy?: string
}

/** Whether pages that are pictures are recognised: never, or where a page has no other text. */
export type OcrMode = 'off' | 'auto'

/** A file as its uploader knows it. Its bytes are a blob, which files with equal content share. */
export interface FileRecord {
  readonly _id: string
  readonly organizationId: string
  readonly name: string
  readonly mediaType: string
  /** 64 hexadecimal digits. */
  readonly sha256: string
  readonly sizeBytes: number
  /** Documents made from it, by id, with their collection. `attachmentCount` is their number, for guards. */
  readonly attachments: Readonly<Record<string, string>>
  readonly attachmentCount: number
  /** The document that it was unpacked from. It is deleted with the last document made of it. */
  readonly partOf?: string
  readonly createdAt: Date
}

/** Some bytes of a file, under a key of their own in the blob store. */
export interface Piece {
  readonly key: string
  readonly sizeBytes: number
}

/** A file that comes in by pieces. */
export interface UploadRecord {
  readonly _id: string
  readonly organizationId: string
  /** The organization while it is open. The organization's limits count these. */
  readonly openOf?: string
  readonly name: string
  /** The size of the whole, as its maker has said it; of one that grows, what has come in. */
  readonly sizeBytes: number
  /** Its maker did not say its size. */
  readonly isGrowing?: true
  /** The sum of the pieces. */
  readonly offset: number
  readonly pieces: readonly Piece[]
  readonly status: UploadStatus
  /** What its maker wants to have back. */
  readonly metadata: string | null
  /** The id of the file that it becomes. Named from the beginning, so that completing it again gives the same file. */
  readonly fileId: string
  /** Once it is being completed, 64 hexadecimal digits. It then takes nothing more. */
  readonly sha256?: string
  /** When the last step of its completion began. Absent: none is under way. */
  readonly completing?: Date
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** An address whose content is a document of a collection, and is fetched again. */
export interface WebSourceRecord {
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  /** Collection and address: an address is in a collection once. */
  readonly sourceKey: string
  /** The key whose rules and wallet it uses. */
  readonly apiKeyId: string
  readonly url: string
  readonly metadata: Readonly<Record<string, string | number | boolean>>
  /** Null until it has been fetched for the first time. */
  readonly documentId: string | null
  /** The file of the version before, which is deleted once the new one is live. */
  readonly formerFileId: string | null
  /** The file that the content under way becomes: it is left over if its worker dies. Null or absent: none. */
  readonly nextFileId?: string | null
  readonly etag: string | null
  readonly lastModified: string | null
  /** Of what was fetched last. */
  readonly sha256: string | null
  readonly refreshSeconds: number | null
  /** When it is fetched again by itself. */
  readonly refreshAt: Date | null
  /** When a worker looks at it next. Absent: never by itself. */
  readonly dueAt?: Date
  readonly checkedAt: Date | null
  readonly changedAt: Date | null
  /** Why it could not be fetched last. */
  readonly error: string | null
  /** The reason in `error`. Absent: the record is from before there were reasons. */
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

export interface BlobRecord {
  /** Organization and SHA-256. */
  readonly _id: string
  readonly organizationId: string
  readonly sizeBytes: number
  /** The key of the bytes. New for each record, so that deleting an old one cannot affect a new one. */
  readonly bytesKey: string
  /** Where the bytes are if they came in pieces: below `bytesKey`, in this order. Absent: all are at `bytesKey`. */
  readonly pieces?: readonly Piece[]
  /** Files that use it, by id: with the time (ms) of a running upload or deletion, or 0 for an existing file. */
  readonly references: Readonly<Record<string, number>>
  readonly referenceCount: number
  /** Bytes that it adds to the organization's storage: 0 until the bytes exist, then its size. */
  readonly counted: CountedNumber
  /**
   * True when nothing uses it any more: its bytes and then the record are being deleted, and a new upload waits for
   * that.
   */
  readonly dying: boolean
  /** When an upload or deletion last began. The sweep checks old ones, and unsets this when none is running. */
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

export interface Progress {
  readonly done: number
  readonly total: number
}

export interface DocumentError {
  readonly code: DocumentErrorCode
  readonly message: string
}

/** The file of a document's next version. Searches find the live one until it has been ingested. */
export interface Replacement {
  readonly fileId: string
  readonly sha256: string
  readonly fileName: string
  /** Null: the document keeps its own. */
  readonly metadata: DocumentRecord['metadata'] | null
  readonly status: 'queued' | 'processing' | 'failed'
  readonly stage: IngestionStage | null
  readonly progress: Progress | null
  readonly error: DocumentError | null
  /** When the file was attached. */
  readonly createdAt: Date
}

/** A file that a document was made from before. */
export interface DocumentVersion {
  readonly version: number
  readonly fileId: string
  readonly fileName: string
  readonly createdAt: Date
  readonly replacedAt: Date
}

/** The most former versions that a document keeps. */
export const MAX_VERSIONS = 20

export interface DocumentRecord extends Telling {
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  readonly fileId: string
  /**
   * Collection and SHA-256 of the live file; in documents of earlier versions, collection and file. Unset as soon as it is
   * deleted, so that the bytes can be attached again at once.
   */
  readonly attachKey?: string
  /** The caller's own id of the document, unique in the collection. */
  readonly externalId?: string
  /** By what a new file finds the document that it replaces: see `version-key.ts`. Unset as soon as it is deleted. */
  readonly versionKey?: string
  /** False as soon as it is deleted: nobody sees it any more. */
  readonly listed: boolean
  /** The key whose allowlist and wallet its ingestion uses. */
  readonly apiKeyId: string
  /**
   * Who pays for an ingestion that repairs the index, from the repair until the document is ready: its own organization
   * has already paid once.
   */
  readonly payer?: { readonly organizationId: string; readonly apiKeyId: string }
  /** The document whose file this one's is a part of, such as an archive or a message; it is deleted with it. */
  readonly parentId?: string
  /** How many documents its file is inside of. Absent: none. */
  readonly depth?: number
  /** The files inside that are not read, once all that are have become documents. Absent: that is not done. */
  readonly unreadFiles?: readonly string[]
  /** The speech model that its owner named for it. Absent: that of the collection. */
  readonly transcriptionModel?: string
  /** The document's name: its file's, until it is changed. */
  readonly fileName: string
  /** How often name and metadata have changed. Absent: never. */
  readonly details?: number
  readonly metadata: Readonly<Record<string, string | number | boolean>>
  readonly status: DocumentStatus
  readonly stage: IngestionStage | null
  readonly progress: Progress | null
  readonly error: DocumentError | null
  /** A file that takes the place of the live one when it has been ingested. Null or absent: none. */
  readonly replacement?: Replacement | null
  /** The number of the live version, and when its file was attached. Absent: the first. */
  readonly version?: number
  readonly versionAt?: Date
  /** The versions before, oldest first, at most `MAX_VERSIONS`. */
  readonly versions?: readonly DocumentVersion[]
  /** Of the live text: see `sketch.ts`. Absent until it is ready for the first time, and in documents of earlier versions. */
  readonly sketch?: string
  readonly warnings: readonly { readonly code: string; readonly message: string; readonly pages: readonly number[] }[]
  readonly pageCount: number | null
  readonly chunkCount: number
  readonly language: string | null
  /** Absent until it is ready for the first time. */
  readonly outline?: Outline
  /**
   * Of the live text, 64 hexadecimal digits. Absent until it is ready for the first time, and in documents of earlier
   * versions.
   */
  readonly textSha256?: string
  readonly attempts: number
  /** Names the chunks of the document when it is ready; null until it is ready for the first time. */
  readonly liveGeneration: string | null
  /** Number of the generation that ingestion writes: 1, and one more for each retry. */
  readonly generation: number
  /** What an ingestion without a live version has read. Absent: nothing yet, or the document is ready. */
  readonly readSoFar?: ReadSoFar
  /** Vectors that it adds to the organization's count. */
  readonly countedVectors: CountedNumber
  /** Chunks that it adds to its collection's count. */
  readonly countedChunks: CountedNumber
  /**
   * The hold of the running embedding, the tokens that finished batches used, those of batches that a limit or a
   * deadline of ours has ended, the generation that it embeds, and the index that it fills.
   */
  readonly embedding: {
    readonly holdId: string
    readonly tokens: number
    /** Charged also if the document fails. Absent: none. */
    readonly stoppedTokens?: number
    readonly generation?: number
    readonly indexName?: string
  } | null
  readonly createdAt: Date
  readonly job?: Job
}

/** A question whose answer is known: evaluations of the collection ask it. */
export interface GoldQuestionRecord {
  /** `gq_…` */
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  readonly query: string
  readonly expected: readonly Expected[]
  readonly createdAt: Date
}

export interface EvaluatedSettings {
  readonly label: string
  readonly mode: SearchMode
  /** As the client wrote it. */
  readonly filter: unknown
  /** Null: none. Absent: that of the collection. */
  readonly rerankModel?: string | null
  readonly lexicalWeight: number
}

export interface EvaluatedQuestion {
  readonly id: string
  readonly query: string
  readonly expected: readonly Expected[]
}

/** An evaluation of a collection's search: its gold questions, asked by each of the settings. */
export interface EvaluationRecord extends Telling {
  /** `evl_…` */
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  /** The key that pays. */
  readonly apiKeyId: string
  /** The collection, until the evaluation has ended: a collection has one at a time. */
  readonly openKey?: string
  /** The index that its questions are asked. Absent in evaluations of earlier versions. */
  readonly indexName?: string
  /** `EvaluatedSettings`s as JSON. */
  readonly settings: string
  /** `EvaluatedQuestion`s as JSON, as they were at the start. */
  readonly questions: string
  /** For each question asked so far, its `Ranks` by each of the settings, as JSON. */
  readonly ranks: string
  readonly status: 'running' | 'completed' | 'failed'
  readonly done: number
  readonly total: number
  /** The charge so far in nano-USD, as a decimal. */
  readonly cost: string
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
  /** What had changed when a watch started it. Absent: somebody asked for it. */
  readonly changes?: CollectionChanges
  /** By how much a measure may fall, in thousandths, before a webhook says so. Absent: nobody wants to know. */
  readonly maxFallThousandths?: number
  /** A `Comparison` as JSON. Absent: none was made. */
  readonly comparison?: string
  readonly startedAt: Date
  readonly endedAt: Date | null
  /** Set until it has ended. */
  readonly job?: Job
}

/** Evaluates a collection after changes. */
export interface EvaluationWatchRecord {
  /** The id of the collection, which has one watch at most. */
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  /** The key that pays, and whose rules count. */
  readonly apiKeyId: string
  /** `EvaluatedSettings`s as JSON. */
  readonly settings: string
  readonly minIntervalSeconds: number
  /** Null: no event. */
  readonly maxFallThousandths: number | null
  /** The number of the last event of the organization that `changes` counts. */
  readonly position: number
  /** Since its last evaluation began. */
  readonly changes: CollectionChanges
  /** The number of changes that a worker has seen, and when it saw the last and the first of them. */
  readonly seen: number
  readonly changedAt: Date | null
  readonly waitingSince: Date | null
  /** The evaluation that is being started, and the changes that it is for. */
  readonly starting?: { readonly id: string; readonly changes: CollectionChanges }
  readonly startedAt: Date | null
  /** Why it has stopped. Null: it watches. */
  readonly error: EvaluationRecord['error']
  readonly createdAt: Date
}

/** Another embedding model for the passages of a collection. */
export interface ReembeddingRecord extends Telling {
  /** `remb_…` */
  readonly _id: string
  readonly organizationId: string
  readonly collectionId: string
  /** The key that pays. */
  readonly apiKeyId: string
  /** The organization, until it has ended: an organization has one at a time. */
  readonly openKey?: string
  readonly formerModel: string
  /** The index that searches ask until the swap. */
  readonly formerIndexName: string
  readonly embeddingModel: string
  readonly dimensions: number
  /** The index that it fills. */
  readonly indexName: string
  readonly status: 'running' | 'cancelling' | 'completed' | 'failed' | 'cancelled'
  readonly stage: ReembeddingStage | null
  /** What its quote said. */
  readonly quoted: { readonly passages: number; readonly tokens: number }
  /** Passages in the new index, and passages of the collection as last counted. */
  readonly done: number
  readonly total: number
  /** Tokens that were embedded. */
  readonly tokens: number
  /** The price of a million tokens, and the charges of holds that have ended. In nano-USD, as decimals. */
  readonly rate: string
  readonly charged: string
  /** The document that is being embedded, and its first passage that is not paid yet. */
  readonly at: { readonly documentId: string; readonly generation: string; readonly next: number } | null
  /** The open hold: the tokens that it is for, and those of the batches so far. */
  readonly hold: { readonly id: string; readonly tokens: number; readonly used: number } | null
  /** Null while it is under way. Set before its index goes, so that a crash does not change the outcome. */
  readonly outcome: 'completed' | 'failed' | 'cancelled' | null
  /** Why it failed, or waits for a repeat. */
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
  readonly startedAt: Date
  readonly endedAt: Date | null
  /** Set until it has ended. */
  readonly job?: Job
}

/** `embedding`: passages get their vectors. `swapping`: the last documents are waited for. `tidying`: what is left goes. */
type ReembeddingStage = 'embedding' | 'swapping' | 'tidying'

/**
 * Work that a document, a collection, an evaluation or a re-embedding waits for. `settle`: a document's chunks get its name and metadata.
 * `tidy`: what a new version has replaced goes.
 */
export interface Job extends FairLeasable {
  readonly kind: 'ingest' | 'delete' | 'settle' | 'tidy' | 'evaluate' | 'reembed'
  /**
   * Starts of an ingestion since its last recorded outcome or step. More than one means that workers have died with it.
   */
  readonly starts: number
  /** Failures that a retry may fix, and when the first of them was. */
  readonly failures: number
  readonly firstFailureAt: Date | null
  /** How often in a row a part of the service was unavailable for it. Such outages are not failures of the job. */
  readonly outages?: number
}

export function newJob(kind: Job['kind'], organizationId: string, dueAt: Date, weight = 1): Job {
  const job: Job = { kind, organizationId, dueAt, lease: null, starts: 0, failures: 0, firstFailureAt: null }
  return weight === 1 ? job : { ...job, weight }
}

/** The replacement that waits or runs; null: none. A failed one waits for nothing. */
export function findPending({ status, replacement }: DocumentRecord): Replacement | null {
  return status === 'ready' && replacement && replacement.status !== 'failed' ? replacement : null
}

/**
 * The generation whose chunks searches give; null: none. A document that has never been ready gives those of its first
 * ingestion as they come, from its first pages on. One whose index is repaired gives none until it is ready again.
 */
export function findableGeneration({
  status,
  liveGeneration,
  generation,
}: Pick<DocumentRecord, 'status' | 'liveGeneration' | 'generation'>): string | null {
  if (status === 'ready') return liveGeneration
  return status === 'processing' && liveGeneration === null ? generationName(generation) : null
}

/** The generation whose text is kept, how many of its first chunks are kept, and of which index they are. */
export interface ReadSoFar {
  readonly generation: number
  readonly indexName: string
  readonly chunks: number
}

/** What the ingestion in work has read, or the one that failed. Null: nothing, or the document is ready. */
export function findReadSoFar({ status, generation, readSoFar }: DocumentRecord): ReadSoFar | null {
  return status !== 'ready' && readSoFar?.generation === generation ? readSoFar : null
}

/** The generation whose text and chunks the document shows. Null: none. */
export function readableGeneration(document: DocumentRecord): string | null {
  const read = findReadSoFar(document)
  return read ? generationName(read.generation) : document.liveGeneration
}

/** One value of a document's sketch: documents with the same key are likely to be alike. See `sketch.ts`. */
export interface SketchRecord {
  /** Document and place in the sketch. */
  readonly _id: string
  readonly organizationId: string
  readonly documentId: string
  /** Collection, place and value. */
  readonly key: string
}

/** The same job, given back to wait for its turn among slow work. Failures still count. */
export function toSlowJob({ organizationId, ...job }: Job, dueAt: Date): Job {
  return { ...job, slowOrganizationId: organizationId!, dueAt, lease: null, starts: 0 }
}

/** What an organization has stored. `marks` are running changes: see `use-cases/count-usage.ts`. */
export interface UsageRecord {
  /** The organization's id. */
  readonly _id: string
  readonly storageBytes: number
  readonly vectors: number
  /** Chunks of ready documents by collection. */
  readonly chunks: Readonly<Record<string, number>>
  readonly marks: Readonly<Record<string, UsageMark>>
}

/** A change of a counted number, from `from` to `to`, which the total includes and the record may not yet. */
export interface UsageMark {
  readonly id: string
  /** The record's `by` before the change. */
  readonly after: string
  readonly from: number
  readonly to: number
  /** When it was set, in ms. */
  readonly at: number
}

export function generationName(number: number): string {
  return `g${number}`
}

export function generationNumber(name: string): number {
  return Number(name.slice(1))
}

export function buildChunkId(documentId: string, generation: string, ordinal: number): string {
  return `${documentId.replace('doc_', 'chunk_')}_${generation}_${ordinal}`
}

/** The document and generation that a chunk id names; undefined when it is not a chunk id. */
export function partsOfChunkId(chunkId: string): { readonly documentId: string; readonly generation: string } | undefined {
  const match = /^chunk_([0-9a-f]{32})_(g\d+)_\d+$/.exec(chunkId)
  return match ? { documentId: `doc_${match[1]}`, generation: match[2]! } : undefined
}
