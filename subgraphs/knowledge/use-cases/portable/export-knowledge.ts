import { type ArchiveSink, listAll } from '../../../common/portable/organization-archive.ts'
import { indexNameOf } from '../../domain/index-name.ts'
import type { CollectionRecord, DocumentRecord } from '../../domain/records.ts'
import { type LineGroup, toLineGroup } from '../../domain/text/page-boxes.ts'
import type { TextMap } from '../../domain/text/text-map.ts'
import type { BlobStore } from '../../ports/blob-store.ts'
import type { KnowledgeStore } from '../../ports/knowledge-store.ts'
import { linesKey, readChunkGroup, textKey, textMapKey } from '../chunk-index/stored-chunks.ts'
import { streamBlob } from '../files/pieces.ts'
import {
  BYTES,
  CHUNKS,
  COLLECTION,
  DOCUMENT,
  EVALUATION,
  FILE,
  GOLD_QUESTION,
  LINES,
  REEMBEDDING,
  SOURCE,
  TEXT_MAP,
  UNREAD,
  WATCH,
} from './kinds.ts'
import { toPortableChunk } from './portable-chunks.ts'

interface KnowledgeExport {
  readonly store: KnowledgeStore
  readonly blobs: Pick<BlobStore, 'get'>
  readonly organizationId: string
}

/**
 * Exports collections, files with their bytes, documents with texts and chunks, web sources, gold questions and
 * evaluations. The chunk index is not read, because the blob store has its content.
 */
export async function exportKnowledge(from: KnowledgeExport, sink: ArchiveSink): Promise<void> {
  const { store, organizationId } = from
  const collections: CollectionRecord[] = []
  for await (const collection of listAll(store.collections, { organizationId, listed: true })) {
    collections.push(collection)
    await sink.record(COLLECTION, collection)
    if (collection.reembedding) sink.skip('re-embeddings in progress')
  }
  for await (const file of listAll(store.files, { organizationId })) await sink.record(FILE, file)
  await exportBytes(from, sink)
  for (const collection of collections) {
    const collectionId = collection._id
    for await (const document of listAll(store.documents, { collectionId, listed: true }))
      await exportDocument(from, collection, document, sink)
    for await (const source of listAll(store.sources, { collectionId })) await sink.record(SOURCE, source)
    for await (const question of listAll(store.goldQuestions, { collectionId })) await sink.record(GOLD_QUESTION, question)
    for await (const watch of listAll(store.evaluationWatches, { collectionId })) await sink.record(WATCH, watch)
    for await (const evaluation of listAll(store.evaluations, { collectionId }))
      if (evaluation.endedAt) await sink.record(EVALUATION, evaluation)
    for await (const reembedding of listAll(store.reembeddings, { collectionId }))
      if (reembedding.endedAt) await sink.record(REEMBEDDING, reembedding)
  }
  for (const { _id } of collections) {
    for await (const document of listAll(store.documents, { collectionId: _id, listed: true })) await exportText(from, document, sink)
  }
  for await (const { openOf } of listAll(store.uploads, { organizationId })) if (openOf !== undefined) sink.skip('open uploads')
}

async function exportBytes({ store, blobs, organizationId }: KnowledgeExport, sink: ArchiveSink): Promise<void> {
  const PAGE = 100
  const lost = (sha256: string) => () =>
    new Error(`The bytes ${sha256} are missing, or were deleted meanwhile. Try again, then run \`kis verify\`.`)
  // A hexadecimal digest follows the organization's ID, so every key is below `g`.
  for (let after = `${organizationId}_`; ; ) {
    const page = await store.blobs.find({ _id: { $gt: after, $lt: `${organizationId}_g` } }, { sort: { _id: 1 }, limit: PAGE })
    for (const blob of page) {
      const { _id, sizeBytes, dying, references, counted } = blob
      // References of a running upload have no file yet.
      const files = Object.keys(references).filter((fileId) => references[fileId] === 0)
      if (dying || files.length === 0 || (counted.value === 0 && sizeBytes > 0)) continue
      const sha256 = _id.slice(-64)
      await sink.record(BYTES, { sha256, sizeBytes, files })
      await sink.file(`files/${sha256}`, sizeBytes, streamBlob(blobs as BlobStore, blob, lost(sha256)))
    }
    if (page.length < PAGE) return
    after = page.at(-1)!._id
  }
}

async function exportDocument(
  from: KnowledgeExport,
  collection: CollectionRecord,
  document: DocumentRecord,
  sink: ArchiveSink,
): Promise<void> {
  const { _id: documentId, status, replacement, liveGeneration } = document
  const { stage: _, progress: __, ...waiting } = replacement ?? {}
  const next = replacement && { ...waiting, status: replacement.status === 'failed' ? 'failed' : 'queued' }
  await sink.record(DOCUMENT, {
    ...document,
    status: status === 'processing' ? 'queued' : status,
    ...(replacement !== undefined && { replacement: next }),
  })
  if (status !== 'ready' || liveGeneration === null) {
    if (status !== 'failed') sink.skip('results of ingestions in progress')
    return
  }
  await exportLayout(from, { ...document, liveGeneration }, sink)
  if (await exportChunks(from, collection, { ...document, liveGeneration }, sink)) return
  await sink.record(UNREAD, { documentId })
  sink.skip('chunks that are not stored')
}

type Live = DocumentRecord & { readonly liveGeneration: string }

async function exportLayout({ blobs }: KnowledgeExport, { _id: documentId, liveGeneration }: Live, sink: ArchiveSink): Promise<void> {
  const map = parse<TextMap>(await blobs.get(textMapKey(documentId, liveGeneration)))
  if (!map) return
  await sink.record(TEXT_MAP, { documentId, ...map })
  if (map.pages === null) return
  for (let group = 0; group <= toLineGroup(map.length); group++) {
    const lines = parse<LineGroup>(await blobs.get(linesKey(documentId, liveGeneration, group)))
    if (lines) await sink.record(LINES, { documentId, group, ...lines })
  }
}

/** Returns false if not all chunks are stored. */
async function exportChunks({ blobs }: KnowledgeExport, collection: CollectionRecord, document: Live, sink: ArchiveSink): Promise<boolean> {
  const { _id: documentId, liveGeneration: generation, chunkCount } = document
  const ingestion = { documentId, generation, collectionId: indexNameOf(collection) }
  for (let group = 0, found = 0; found < chunkCount; group++) {
    const stored = await readChunkGroup({ blobs: blobs as BlobStore }, ingestion, group)
    if (!stored || stored.chunks.length === 0) return false
    await sink.record(CHUNKS, { documentId, attributes: stored.attributes, passages: stored.chunks.map(toPortableChunk) })
    found += stored.chunks.length
  }
  return true
}

async function exportText({ blobs }: KnowledgeExport, { _id, status, liveGeneration }: DocumentRecord, sink: ArchiveSink): Promise<void> {
  const text = status === 'ready' && liveGeneration !== null ? await blobs.get(textKey(_id, liveGeneration)) : null
  if (text) await sink.file(`texts/${_id}`, text.length, once(text))
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** Returns null if there is no value or it is corrupted, because the text is readable without it. */
function parse<T>(bytes: Uint8Array | null): T | null {
  try {
    return bytes && (JSON.parse(Buffer.from(bytes).toString()) as T)
  } catch {
    return null
  }
}
