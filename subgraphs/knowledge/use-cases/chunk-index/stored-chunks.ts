import { documentAttributes } from '../../domain/document-attributes.ts'
import { indexTagOf } from '../../domain/index-name.ts'
import { type DocumentRecord, findReadSoFar, generationName } from '../../domain/records.ts'
import type { IndexedChunk, IndexedDocument, Terms } from '../../ports/chunk-index.ts'
import type { Deps } from '../deps.ts'
import { toTerms } from './rebuild-index.ts'

/**
 * The blob store keeps a copy of what the index stores for a document. A lost index can be filled from it without a new
 * embedding. One blob holds up to 16 passages: those whose ordinals give the same quotient when divided by 16. Each index
 * of a collection has blobs of its own, because their vectors are of another model. The format of a blob is the length
 * of the JSON in 4 bytes, little-endian; the JSON; the vectors as 4-byte floats; and the token states, as many bytes of
 * each passage as the JSON says.
 */

export const CHUNKS_PER_BLOB = 16
const LENGTH_BYTES = 4

/** Terms are not kept, because they can be computed again. */
type BlobChunk = Omit<IndexedChunk, 'vector' | 'tokenStates' | keyof Terms>

interface Header {
  readonly attributes: IndexedDocument['attributes']
  readonly passages: readonly BlobChunk[]
  /** Bytes of each passage's token states. Absent in blobs that were written before they were kept. */
  readonly tokenStates?: readonly number[]
}

export interface ChunkGroup {
  readonly attributes: IndexedDocument['attributes']
  readonly chunks: readonly (BlobChunk & Pick<IndexedChunk, 'vector' | 'tokenStates'>)[]
}

/** Returns the key of a document's extracted text. */
export function textKey(documentId: string, generation: string): string {
  return `${documentId}_${generation}`
}

/** Returns the prefix of the keys of an ingestion, in all indices. */
function ingestionPrefix(documentId: string, generation: string): string {
  return `${textKey(documentId, generation)}_`
}

/** Returns the prefix of the keys of an ingestion's passages in one index. */
function chunksPrefix(documentId: string, generation: string, indexName: string): string {
  const tag = indexTagOf(indexName)
  return ingestionPrefix(documentId, generation) + (tag && `${tag}_`)
}

/** Returns the key of the map of an ingestion's text: see `text-map.ts`. */
export function textMapKey(documentId: string, generation: string): string {
  return `${ingestionPrefix(documentId, generation)}map`
}

/** Returns the key of a group of the lines of an ingestion: see `page-boxes.ts`. */
export function linesKey(documentId: string, generation: string, group: number): string {
  return `${ingestionPrefix(documentId, generation)}lines_${group}`
}

/** Returns the number of the group, and so of the blob, of a passage. */
export function toGroup(ordinal: number): number {
  return Math.floor(ordinal / CHUNKS_PER_BLOB)
}

/** Keeps passages, all of one group, beside those of the group that were kept before. */
export async function storeChunks(
  { blobs }: Pick<Deps, 'blobs'>,
  document: IndexedDocument,
  chunks: readonly IndexedChunk[],
): Promise<void> {
  const { documentId, generation, collectionId, attributes } = document
  const group = toGroup(chunks[0]!.ordinal)
  const key = chunksPrefix(documentId, generation, collectionId) + group
  const isWhole = chunks.length === CHUNKS_PER_BLOB
  const before = isWhole ? null : await blobs.get(key)
  const stored = new Map((before ? unpack(before).chunks : []).map((chunk) => [chunk.ordinal, chunk]))
  for (const { words, grams, ...chunk } of chunks) stored.set(chunk.ordinal, chunk)
  const sorted = [...stored.values()].sort((a, b) => a.ordinal - b.ordinal)
  await blobs.put(key, pack({ attributes, chunks: sorted }))
}

/** Deletes transcribed sound: a retry may be by another model. */
export async function purgeTranscripts({ blobs }: Pick<Deps, 'blobs'>, id: string): Promise<void> {
  await blobs.deleteAll(`${id}_speech_`)
}

/** Takes the vectors from the passages that an ingestion has kept. Nothing counts them once it has failed. Repeatable. */
export async function dropVectors({ blobs }: Pick<Deps, 'blobs'>, document: DocumentRecord): Promise<void> {
  const { generation, indexName, chunks } = findReadSoFar(document) ?? { generation: 0, indexName: '', chunks: 0 }
  const prefix = chunksPrefix(document._id, generationName(generation), indexName)
  // A crash may have kept one group that was not recorded.
  for (let group = 0; group <= toGroup(chunks); group++) {
    const bytes = await blobs.get(prefix + group)
    if (!bytes) continue
    const { attributes, chunks: stored } = unpack(bytes)
    const texts = stored.map((chunk) => ({ ...chunk, vector: new Float32Array(), tokenStates: null }))
    await blobs.put(prefix + group, pack({ attributes, chunks: texts }))
  }
}

/** Lists the passages with ordinals from `from` to before `to`, as they were kept for an index. */
export async function listStoredChunks(
  deps: Pick<Deps, 'blobs'>,
  ingestion: Pick<IndexedDocument, 'documentId' | 'generation' | 'collectionId'>,
  from: number,
  to: number,
): Promise<ChunkGroup['chunks']> {
  const found: ChunkGroup['chunks'][number][] = []
  for (let group = toGroup(from); group * CHUNKS_PER_BLOB < to; group++) {
    const stored = await readChunkGroup(deps, ingestion, group)
    found.push(...(stored?.chunks ?? []).filter(({ ordinal }) => ordinal >= from && ordinal < to))
  }
  return found
}

/** Deletes the texts and passages of the ingestions with these numbers, from `from` to before `to`. */
export async function purgeIngestions({ blobs }: Pick<Deps, 'blobs'>, id: string, from: number, to: number): Promise<void> {
  for (let number = from; number < to; number++) {
    const generation = generationName(number)
    await blobs.delete(textKey(id, generation))
    await blobs.deleteAll(ingestionPrefix(id, generation))
  }
}

/** Deletes the passages that were kept for one index of a document's live version. Its text stays. */
export async function purgeChunks(
  { blobs }: Pick<Deps, 'blobs'>,
  { _id, liveGeneration, chunkCount }: Pick<DocumentRecord, '_id' | 'liveGeneration' | 'chunkCount'>,
  indexName: string,
): Promise<void> {
  if (liveGeneration === null) return
  const prefix = chunksPrefix(_id, liveGeneration, indexName)
  // Without a tag, the prefix is that of all other indices, too.
  if (indexTagOf(indexName)) return blobs.deleteAll(prefix)
  for (let group = 0; group * CHUNKS_PER_BLOB < chunkCount; group++) await blobs.delete(prefix + group)
}

/** Returns the passages of one group that were kept for an index, or null if they are not kept. */
export async function readChunkGroup(
  { blobs }: Pick<Deps, 'blobs'>,
  { documentId, generation, collectionId: indexName }: Pick<IndexedDocument, 'documentId' | 'generation' | 'collectionId'>,
  group: number,
): Promise<ChunkGroup | null> {
  const bytes = await blobs.get(chunksPrefix(documentId, generation, indexName) + group)
  return bytes && unpack(bytes)
}

/**
 * Puts a ready document back into an index from its kept passages. Returns false if not all passages are kept; some may
 * then be in the index. Repeatable.
 */
export async function restoreDocument(
  { blobs, index }: Pick<Deps, 'blobs' | 'index'>,
  document: DocumentRecord,
  indexName: string,
): Promise<boolean> {
  const { _id: documentId, organizationId, liveGeneration: generation, chunkCount } = document
  if (generation === null) return false
  for (let group = 0, found = 0; found < chunkCount; group++) {
    const stored = await readChunkGroup({ blobs }, { documentId, generation, collectionId: indexName }, group)
    if (!stored) return false
    const { chunks } = stored
    const attributes = documentAttributes(stored.attributes, document)
    if (chunks.length !== Math.min(CHUNKS_PER_BLOB, chunkCount - found)) return false
    const terms = await toTerms(chunks)
    await index.put(
      { organizationId, collectionId: indexName, documentId, generation, attributes },
      chunks.map((chunk, i) => ({ ...chunk, ...terms[i]! })),
    )
    found += chunks.length
  }
  return true
}

/** Returns the attributes with which an ingestion was kept, or null if nothing of it is kept. */
export async function readStoredAttributes(
  { blobs }: Pick<Deps, 'blobs'>,
  document: Pick<IndexedDocument, 'documentId' | 'generation' | 'collectionId'>,
): Promise<IndexedDocument['attributes'] | null> {
  return (await readChunkGroup({ blobs }, document, 0))?.attributes ?? null
}

function pack({ attributes, chunks }: ChunkGroup): Uint8Array {
  const tokenEmbeddings = chunks.map(({ tokenStates }) => tokenStates ?? new Int8Array())
  const header: Header = {
    attributes,
    passages: chunks.map(({ vector: _, tokenStates: __, ...chunk }) => chunk),
    tokenStates: tokenEmbeddings.map(({ length }) => length),
  }
  const json = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32LE(json.length)
  const numbers = [...chunks.map(({ vector }) => vector), ...tokenEmbeddings]
  return Buffer.concat([length, json, ...numbers.map(({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength))])
}

function unpack(bytes: Uint8Array): ChunkGroup {
  const all = Buffer.from(bytes)
  const end = LENGTH_BYTES + all.readUInt32LE(0)
  const { attributes, passages: headers, tokenStates = [] } = JSON.parse(all.toString('utf8', LENGTH_BYTES, end)) as Header
  let embeddingsAt = all.length - tokenStates.reduce((sum, length) => sum + length, 0)
  // Copy the bytes, because a Float32Array must begin at a multiple of four bytes.
  const floats = new Float32Array(Uint8Array.from(all.subarray(end, embeddingsAt)).buffer)
  const dimensions = floats.length / headers.length
  return {
    attributes,
    chunks: headers.map((header, i) => {
      const embeddings = all.subarray(embeddingsAt, embeddingsAt + (tokenStates[i] ?? 0))
      embeddingsAt += embeddings.length
      const vector = floats.subarray(i * dimensions, (i + 1) * dimensions)
      return { ...header, vector, tokenStates: embeddings.length > 0 ? Int8Array.from(embeddings) : null }
    }),
  }
}
