import type { IndexedChunk, IndexedDocument, StoredChunk, Terms } from '../../ports/chunk-index.ts'
import { attributeTerm } from './attributes.ts'
import { encodeCounts } from './term-counts.ts'

/** The fields of an entry that describe its chunk. */
export interface ChunkSource {
  readonly organization_id: string
  readonly collection_id: string
  readonly document_id: string
  readonly generation: string
  readonly ordinal: number
  readonly text: string
  readonly heading_path: readonly string[]
  /** Absent in entries of the first layout. */
  readonly context?: string
  readonly page_start: number | null
  readonly page_end: number | null
  readonly char_start: number
  readonly char_end: number
  readonly language: string | null
}

/**
 * The part of `_source` that a rebuild copies: all except the mark of copied entries, and a field of an earlier layout.
 * `_source` has no terms, which are computed again.
 */
export const COPIED = { excludes: ['copied', 'small_vector'], exclude_vectors: false }

/** The `_source` of an entry, as requested with `COPIED`. */
export interface EntrySource extends ChunkSource {
  readonly attributes: readonly string[]
  readonly vector: number[]
  /** Absent in entries without token embeddings. */
  readonly token_states?: string
}

/** Converts a chunk to an entry. `mark` precedes every term: see `term-counts.ts`. */
export function toEntry(document: IndexedDocument, chunk: IndexedChunk, mark: string) {
  const source: ChunkSource = {
    organization_id: document.organizationId,
    collection_id: document.collectionId,
    document_id: document.documentId,
    generation: document.generation,
    ordinal: chunk.ordinal,
    text: chunk.text,
    heading_path: chunk.headingPath,
    context: chunk.context,
    page_start: chunk.pageStart,
    page_end: chunk.pageEnd,
    char_start: chunk.charStart,
    char_end: chunk.charEnd,
    language: chunk.language,
  }
  return {
    ...source,
    attributes: toAttributeTerms(document.attributes),
    ...termFields(chunk, mark),
    vector: decimals(chunk.vector),
    ...(chunk.tokenStates && { token_states: Buffer.from(chunk.tokenStates).toString('base64') }),
  }
}

/** Returns the entry with other attributes. */
export function withAttributes(source: EntrySource, attributes: IndexedDocument['attributes'], terms: Terms, mark: string) {
  return { ...source, attributes: toAttributeTerms(attributes), ...termFields(terms, mark) }
}

function toAttributeTerms(attributes: IndexedDocument['attributes']): readonly string[] {
  return Object.entries(attributes).flatMap(([field, value]) => (value === null ? [] : [attributeTerm(field, value)]))
}

/** Returns the entry for an index that is being filled, with these terms. */
export function toCopy(source: EntrySource, terms: Terms, mark: string) {
  return { ...source, ...termFields(terms, mark), copied: true }
}

function termFields({ words, grams }: Terms, mark: string) {
  const marked = (terms: readonly string[]) => terms.map((term) => mark + term)
  return {
    words: marked(words),
    // The server need not know the frequencies. Indexing them takes a third of its CPU per chunk and finds nothing
    // more.
    grams: marked([...new Set(grams)]),
    word_count: words.length,
    gram_count: grams.length,
    term_counts: encodeCounts({ words, grams }),
  }
}

export function toStoredChunk(chunkId: string, source: ChunkSource): StoredChunk {
  return {
    chunkId,
    organizationId: source.organization_id,
    collectionId: source.collection_id,
    documentId: source.document_id,
    generation: source.generation,
    ordinal: source.ordinal,
    text: source.text,
    headingPath: source.heading_path,
    pageStart: source.page_start,
    pageEnd: source.page_end,
    charStart: source.char_start,
    charEnd: source.char_end,
    language: source.language,
  }
}

/** Rounds to seven decimals: for vectors of length 1 as exact as a float, and half as long in JSON. */
export function decimals(vector: Float32Array): number[] {
  return Array.from(vector, (x) => Math.round(x * 1e7) / 1e7)
}
