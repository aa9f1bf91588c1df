import { z } from 'zod'
import { recordKind, type Shape } from '../../../common/portable/record-kind.ts'
import { count, date, digits, failure, id, json, named, sha256, text } from '../../../common/portable/shapes.ts'
import { METADATA_PREFIX } from '../../domain/document-attributes.ts'
import { requireMetadata } from '../../domain/names.ts'
import {
  type CollectionRecord,
  DOCUMENT_ERROR_CODES,
  type DocumentRecord,
  type DocumentVersion,
  type EvaluationRecord,
  type EvaluationWatchRecord,
  type FileRecord,
  type GoldQuestionRecord,
  MAX_VERSIONS,
  type ReembeddingRecord,
  type Replacement,
  WEB_SOURCE_ERROR_REASONS,
  type WebSourceRecord,
} from '../../domain/records.ts'
import type { LineGroup } from '../../domain/text/page-boxes.ts'
import { MARK_CHARS, type TextMap } from '../../domain/text/text-map.ts'
import { MIN_INTERVAL_SECONDS } from '../evaluation/evaluation-watches.ts'
import { MAX_REFRESH_SECONDS, MIN_REFRESH_SECONDS } from '../web/sources.ts'

const NAME = text(2_000)
const MODEL = text(500)
/** Of the largest collection of a document, and more. */
const MAX_LISTED = 100_000
const INDEX_NAME = z.string().regex(/^col_[0-9a-f]{32}(?:_[0-9a-f]{32})?$/)
const GENERATION = z.string().regex(/^g[1-9]\d{0,8}$/)
const KEYED = text(500)
const METADATA = z.unknown().transform((value, context) => {
  try {
    return requireMetadata(value, 'metadata')
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message })
    return z.NEVER
  }
})
/**
 * Ingestions of a document, its passages, and its pages, each far above what there is. A deletion looks for the bytes of
 * each, so that no record may have any number of them.
 */
const MAX_GENERATION = 1_000_000
const MAX_CHUNKS = 2_000_000
const MAX_PAGES = 1_000_000
/** Characters of a text. */
const MAX_LENGTH = 64 * 1024 * 1024
const page = () => count().max(MAX_PAGES).nullable()
const EXPECTED = z.strictObject({ fileName: NAME.nullable(), page: page(), phrase: text(100_000).nullable() })
const CHANGES = named(count(), 100)

export const COLLECTION = recordKind<CollectionRecord, 'organizationId' | 'reembedding' | 'listed' | 'job'>('knowledge/collections', {
  _id: id('col'),
  code: z.string().min(1).max(200),
  name: NAME,
  description: text(100_000).nullable(),
  embeddingModel: MODEL,
  dimensions: count().min(1).max(65_536),
  indexName: INDEX_NAME.optional(),
  rerankModel: MODEL.nullable().optional(),
  transcriptionModel: MODEL.nullable().optional(),
  ocr: z.enum(['off', 'auto']).optional(),
  createdAt: date(),
})

export const FILE = recordKind<FileRecord, 'organizationId' | 'attachmentCount'>('knowledge/files', {
  _id: id('file'),
  name: NAME,
  mediaType: text(500),
  sha256: sha256(),
  sizeBytes: count(),
  attachments: named(id('col'), 1_000),
  partOf: id('doc').optional(),
  createdAt: date(),
})

/** The bytes that files share. They are in the archive as `files/<sha256>`. */
export interface PortableBytes {
  readonly sha256: string
  readonly sizeBytes: number
  readonly files: readonly string[]
}

export const BYTES = recordKind<PortableBytes, never>('knowledge/bytes', {
  sha256: sha256(),
  sizeBytes: count(),
  files: z.array(id('file')).min(1).max(1_000),
})

const DOCUMENT_ERROR = z.strictObject({ code: z.enum(DOCUMENT_ERROR_CODES), message: text(10_000) })

const REPLACEMENT: Shape<Replacement, 'stage' | 'progress'> = {
  fileId: id('file'),
  sha256: sha256(),
  fileName: NAME,
  metadata: METADATA.nullable(),
  status: z.enum(['queued', 'failed']),
  error: DOCUMENT_ERROR.nullable(),
  createdAt: date(),
}

const VERSION: Shape<DocumentVersion, never> = {
  version: count(),
  fileId: id('file'),
  fileName: NAME,
  createdAt: date(),
  replacedAt: date(),
}

/** What belongs to work that is under way, to counts, and to the log of events. */
type StaysOfDocument =
  | 'organizationId'
  | 'outbox'
  | 'outboxOf'
  | 'outboxMark'
  | 'listed'
  | 'payer'
  | 'stage'
  | 'progress'
  | 'readSoFar'
  | 'countedVectors'
  | 'countedChunks'
  | 'embedding'
  | 'job'

export const DOCUMENT = recordKind<DocumentRecord, StaysOfDocument>('knowledge/documents', {
  _id: id('doc'),
  collectionId: id('col'),
  fileId: id('file'),
  attachKey: KEYED.optional(),
  externalId: text(200).optional(),
  versionKey: KEYED.optional(),
  apiKeyId: id('key'),
  parentId: id('doc').optional(),
  depth: count().optional(),
  unreadFiles: z.array(NAME).max(MAX_LISTED).optional(),
  transcriptionModel: MODEL.optional(),
  fileName: NAME,
  details: count().optional(),
  metadata: METADATA,
  status: z.enum(['queued', 'ready', 'failed']),
  error: DOCUMENT_ERROR.nullable(),
  replacement: z.strictObject(REPLACEMENT).nullable().optional(),
  version: count().optional(),
  versionAt: date().optional(),
  versions: z.array(z.strictObject(VERSION)).max(MAX_VERSIONS).optional(),
  sketch: z
    .string()
    .regex(/^[A-Za-z0-9+/]{1,2000}={0,2}$/)
    .optional(),
  warnings: z.array(z.strictObject({ code: text(200), message: text(10_000), pages: z.array(count()).max(MAX_LISTED) })).max(MAX_LISTED),
  pageCount: page(),
  chunkCount: count().max(MAX_CHUNKS),
  language: text(20).nullable(),
  outline: z.strictObject({ title: text(1_000).nullable(), headings: z.array(text(1_000)).max(100) }).optional(),
  textSha256: sha256().optional(),
  attempts: count(),
  liveGeneration: GENERATION.nullable(),
  generation: count().min(1).max(MAX_GENERATION),
  createdAt: date(),
})

/** Documents of this step whose text or passages could not be read: they are ingested again. */
export const UNREAD = recordKind<{ readonly documentId: string }, never>('knowledge/unread', { documentId: id('doc') })

type PortableMap = TextMap & { readonly documentId: string }

/** Where pages begin in the text of a document, which is in the archive as `texts/<document>`. */
export const TEXT_MAP = recordKind<PortableMap, never>('knowledge/text-maps', {
  documentId: id('doc'),
  pages: z.array(count()).max(MAX_LISTED).nullable(),
  length: count().max(MAX_LENGTH),
  marks: z
    .array(z.tuple([count(), count()]))
    .max(MAX_LISTED)
    .refine(areNear, 'has marks that are not near each other'),
})

/** Between two of these marks a text is read at once. A character has one or two units of UTF-16, of at most 3 bytes each. */
function areNear(marks: readonly (readonly [chars: number, bytes: number])[]): boolean {
  const most = MARK_CHARS + 1
  return marks.every(([chars, bytes], i) => {
    const [charsBefore, bytesBefore] = marks[i - 1] ?? [0, 0]
    const isFirst = i === 0 && chars === 0 && bytes === 0
    return isFirst || (i > 0 && isStep(chars - charsBefore, most) && isStep(bytes - bytesBefore, 3 * most))
  })
}

const isStep = (size: number, most: number) => size >= 1 && size <= most

type PortableLines = LineGroup & { readonly documentId: string; readonly group: number }

/** Where the pages show the text: one group of lines. */
export const LINES = recordKind<PortableLines, never>('knowledge/lines', {
  documentId: id('doc'),
  group: count().max(100_000),
  pages: z.array(z.tuple([z.number(), z.number(), z.number()])).max(MAX_LISTED),
  lines: z.array(z.tuple([z.number(), count(), count(), z.number(), z.number(), z.number(), z.number()])).max(MAX_LISTED),
})

/** A passage with its vector (little-endian floats) and token states, both in base64. */
export interface PortableChunk {
  readonly ordinal: number
  readonly text: string
  readonly headingPath: readonly string[]
  readonly pageStart: number | null
  readonly pageEnd: number | null
  readonly charStart: number
  readonly charEnd: number
  readonly language: string | null
  readonly context: string
  readonly vector: string
  readonly tokenStates: string | null
}

/** The passages of a document whose ordinals give the same quotient when divided by 16. */
export interface PortableChunks {
  readonly documentId: string
  readonly attributes: Readonly<Record<string, string | number | boolean | null>>
  readonly passages: readonly PortableChunk[]
}

const CHUNK: Shape<PortableChunk, never> = {
  ordinal: count().max(MAX_CHUNKS),
  text: text(100_000),
  headingPath: z.array(text(10_000)).max(100),
  pageStart: page(),
  pageEnd: page(),
  charStart: count(),
  charEnd: count(),
  language: z.enum(['ar', 'en']).nullable(),
  context: text(100_000),
  vector: z.base64().max(400_000),
  tokenStates: z.base64().max(16_000).nullable(),
}

/** What an ingestion gives its passages for filters, besides the metadata. */
const FACTS = z.strictObject({
  media_type: text(500).nullable().optional(),
  language: text(20).nullable().optional(),
  created_at: count().optional(),
  generation: GENERATION.optional(),
  file_name: NAME.optional(),
})
/** An index has a bound for each value: Elasticsearch refuses 32,767 bytes, with all that is written beside it. */
const ATTRIBUTES = z.record(z.string(), z.unknown()).superRefine((attributes, context) => {
  const { metadata = [], facts = [] } = Object.groupBy(Object.entries(attributes), ([name]) =>
    name.startsWith(METADATA_PREFIX) ? 'metadata' : 'facts',
  )
  const own = metadata.map(([name, value]) => [name.slice(METADATA_PREFIX.length), value])
  for (const { error } of [FACTS.safeParse(Object.fromEntries(facts)), METADATA.safeParse(Object.fromEntries(own))])
    for (const { path, message } of error?.issues ?? []) context.addIssue({ code: 'custom', path, message })
})

export const CHUNKS = recordKind<PortableChunks, never>('knowledge/passages', {
  documentId: id('doc'),
  attributes: ATTRIBUTES,
  passages: z.array(z.strictObject(CHUNK)).min(1).max(16),
})

export const SOURCE = recordKind<WebSourceRecord, 'organizationId' | 'nextFileId'>('knowledge/web-sources', {
  _id: id('web'),
  collectionId: id('col'),
  sourceKey: text(10_000),
  apiKeyId: id('key'),
  url: text(10_000),
  metadata: METADATA,
  documentId: id('doc').nullable(),
  formerFileId: id('file').nullable(),
  etag: text(10_000).nullable(),
  lastModified: text(10_000).nullable(),
  sha256: sha256().nullable(),
  refreshSeconds: count().min(MIN_REFRESH_SECONDS).max(MAX_REFRESH_SECONDS).nullable(),
  refreshAt: date().nullable(),
  dueAt: date().optional(),
  checkedAt: date().nullable(),
  changedAt: date().nullable(),
  error: text(10_000).nullable(),
  errorReason: z.enum(WEB_SOURCE_ERROR_REASONS).nullable().optional(),
  createdAt: date(),
})

export const GOLD_QUESTION = recordKind<GoldQuestionRecord, 'organizationId'>('knowledge/gold-questions', {
  _id: id('gq'),
  collectionId: id('col'),
  query: text(100_000),
  expected: z.array(EXPECTED).max(1_000),
  createdAt: date(),
})

type StaysOfReporting = 'organizationId' | 'outbox' | 'outboxOf' | 'outboxMark' | 'openKey' | 'job'

export const EVALUATION = recordKind<EvaluationRecord, StaysOfReporting>('knowledge/evaluations', {
  _id: id('evl'),
  collectionId: id('col'),
  apiKeyId: id('key'),
  indexName: INDEX_NAME.optional(),
  settings: json(z.array(z.looseObject({}))),
  questions: json(z.array(z.looseObject({}))),
  ranks: json(),
  status: z.enum(['completed', 'failed']),
  done: count(),
  total: count(),
  cost: digits(),
  error: failure().nullable(),
  changes: CHANGES.optional(),
  maxFallThousandths: count().optional(),
  comparison: json().optional(),
  startedAt: date(),
  endedAt: date(),
})

export const WATCH = recordKind<
  EvaluationWatchRecord,
  'organizationId' | 'position' | 'changes' | 'seen' | 'changedAt' | 'waitingSince' | 'starting' | 'startedAt'
>('knowledge/evaluation-watches', {
  _id: id('col'),
  collectionId: id('col'),
  apiKeyId: id('key'),
  settings: json(z.array(z.looseObject({}))),
  minIntervalSeconds: count().min(MIN_INTERVAL_SECONDS),
  maxFallThousandths: count().nullable(),
  error: failure().nullable(),
  createdAt: date(),
})

export const REEMBEDDING = recordKind<ReembeddingRecord, StaysOfReporting | 'at' | 'hold' | 'stage'>('knowledge/reembeddings', {
  _id: id('remb'),
  collectionId: id('col'),
  apiKeyId: id('key'),
  formerModel: MODEL,
  formerIndexName: INDEX_NAME,
  embeddingModel: MODEL,
  dimensions: count().min(1),
  indexName: INDEX_NAME,
  status: z.enum(['completed', 'failed', 'cancelled']),
  quoted: z.strictObject({ passages: count(), tokens: count() }),
  done: count(),
  total: count(),
  tokens: count(),
  rate: digits(),
  charged: digits(),
  outcome: z.enum(['completed', 'failed', 'cancelled']).nullable(),
  error: failure().nullable(),
  startedAt: date(),
  endedAt: date(),
})
