import type { SearchFilter } from '../domain/search/search-filter.ts'

/** Made by `domain/text-analysis.ts`; adapters index them as they are. */
export interface Terms {
  /** Light stems, in order, with repeats. */
  readonly words: readonly string[]
  /** 3-grams inside each word with its edges marked, in order, with repeats. */
  readonly grams: readonly string[]
}

/** A passage with what searches need of it. */
export interface IndexedChunk extends Terms {
  /** Deterministic: the document, its generation and the ordinal, so that a repeated write overwrites. */
  readonly chunkId: string
  readonly ordinal: number
  readonly text: string
  readonly headingPath: readonly string[]
  readonly pageStart: number | null
  readonly pageEnd: number | null
  readonly charStart: number
  readonly charEnd: number
  /** `ar`, `en` or null. Fusion reorders within a language only. */
  readonly language: string | null
  /** Length 1. Adapters may keep it as int8. */
  readonly vector: Float32Array
  /** What stands before `text` in what the vector and the terms are made of, or empty. Kept, so that the terms can be made again. */
  readonly context: string
}

export interface IndexedDocument {
  readonly organizationId: string
  readonly collectionId: string
  readonly documentId: string
  /** Names one ingestion of the document; chunks of different generations may be there at once, and searches name the live ones by re-check. */
  readonly generation: string
  /** Facts for filters: file_name, media_type, language, created_at (ms), and `metadata.*`. */
  readonly attributes: Readonly<Record<string, string | number | boolean | null>>
}

export interface ChunkQuery {
  readonly collectionId: string
  /** Null: no vector leg, and candidates have no cosine. */
  readonly vector: Float32Array | null
  /** Empty: no lexical legs. Distinct stems and 3-grams of the query. */
  readonly words: readonly string[]
  readonly grams: readonly string[]
  /** Candidates of each leg, 1 to 1000. */
  readonly candidates: number
  readonly filter: SearchFilter | null
}

/** A chunk that a leg found; the legs' figures are there for every candidate, whichever leg found it. */
export interface ChunkCandidate {
  readonly chunkId: string
  readonly documentId: string
  readonly generation: string
  readonly language: string | null
  /** -1 to 1; null without a query vector. */
  readonly cosine: number | null
  /** BM25 (k1 1.2, b .75, idf ln(1 + (n - df + .5) / (df + .5)) over the collection) divided by the query's ceiling: 0 to 1. */
  readonly wordCoverage: number
  readonly gramCoverage: number
}

export interface StoredChunk extends Omit<IndexedChunk, 'vector' | 'context' | keyof Terms> {
  readonly organizationId: string
  readonly collectionId: string
  readonly documentId: string
  readonly generation: string
}

/** A collection that has chunks in the index. */
export interface IndexedCollection {
  readonly collectionId: string
  readonly chunks: number
}

/** What the index holds of one ingestion of a document. */
export interface IndexedGeneration {
  readonly documentId: string
  readonly generation: string
  /** At least 1. With `lastOrdinal` one less, all of them from 0 on are there. */
  readonly chunks: number
  readonly lastOrdinal: number
}

/** What a chunk's terms are made of; `context` is null for chunks that were written before it was kept. */
export interface Passage extends Pick<IndexedChunk, 'text' | 'headingPath'> {
  readonly context: string | null
}

/** The terms of passages, in their order, at most 256. */
export type TermsOf = (passages: readonly Passage[]) => Promise<readonly Terms[]>

export interface RebuildStep {
  /** Chunks taken over by this step. */
  readonly chunks: number
  /** Where the next step begins; null: everything is built anew. */
  readonly next: string | null
}

/**
 * Chunks, their vectors and their terms, searchable by both. Derived: everything in it can be made again from the primary store.
 * Adapters pass `test/contract/chunk-index.ts`. @throws {ServiceUnavailable} the index did not answer; every call may be repeated.
 */
export interface ChunkIndex extends AsyncDisposable {
  /** Makes room for a collection whose vectors have this length. Repeatable. */
  createCollection(collection: {
    readonly organizationId: string
    readonly collectionId: string
    readonly dimensions: number
  }): Promise<void>
  /** Everything of the collection. Repeatable. */
  dropCollection(collectionId: string): Promise<void>
  /** Whether `createCollection` has made room for it. */
  hasCollection(collectionId: string): Promise<boolean>
  /** Writes or replaces chunks, at most 256, in one transaction where the adapter has them. @throws {KisError} `invalid_request` a vector has another length or is not finite. */
  put(document: IndexedDocument, chunks: readonly IndexedChunk[]): Promise<void>
  /** Ordinals that are there for this generation, ascending: where an interrupted ingestion goes on. */
  ordinals(collectionId: string, documentId: string, generation: string): Promise<readonly number[]>
  /** Deletes a document's chunks: all of them, or all but one generation's. Not found by searches that start later. Repeatable. */
  deleteDocument(collectionId: string, documentId: string, keepGeneration?: string): Promise<void>
  /** Deletes the chunks of one ingestion and no others. Not found by searches that start later. Repeatable. */
  deleteGeneration(collectionId: string, documentId: string, generation: string): Promise<void>
  /** Collections that have chunks, also without room, ascending by id: those behind `after` (`''`: all), at most `limit`, 1 to 1000. */
  listCollections(after: string, limit: number): Promise<readonly IndexedCollection[]>
  /** Ascending by document and generation: those of documents behind `after` (`''`: all), at most `limit`, 1 to 1000. */
  listGenerations(collectionId: string, after: string, limit: number): Promise<readonly IndexedGeneration[]>
  /** Union of the legs' candidates, in no particular order; a collection without chunks gives none. */
  search(query: ChunkQuery, signal: AbortSignal): Promise<readonly ChunkCandidate[]>
  /** In the order of the ids; those that are not there are left out. At most 1000. */
  get(collectionId: string, chunkIds: readonly string[]): Promise<readonly StoredChunk[]>
  /**
   * One step of building the whole index anew, in today's layout and with the terms that `termsOf` gives, while it is used: searches see
   * each chunk once throughout, and no write or deletion is lost. `after` is null to begin, which takes up what is left of an interrupted
   * rebuild, then `next` of the step before. A step takes some seconds. Two rebuilds at once do no harm. Steps may be repeated.
   * @throws {KisError} `invalid_request` `after` is not what a step gave.
   */
  rebuild(after: string | null, termsOf: TermsOf, signal: AbortSignal): Promise<RebuildStep>
  /**
   * Puts an empty index in the place of one that cannot be read: damaged, lost, or another installation's. What was there is kept beside it, where there was
   * something. False, and nothing is done: it can be read.
   */
  replaceUnreadable(): Promise<boolean>
  /** Rejects when the index cannot serve. */
  ping(signal: AbortSignal): Promise<void>
}
