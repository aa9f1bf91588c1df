import type { SearchFilter } from '../domain/search/search-filter.ts'
import type { TokenEmbeddings } from './inference.ts'

/** The search terms of a text, created by `domain/text/text-analysis.ts`. Adapters index them unchanged. */
export interface Terms {
  /** Light stems in the order of the text, duplicates included. */
  readonly words: readonly string[]
  /** 3-grams of each word with its edges marked, in the order of the text, duplicates included. */
  readonly grams: readonly string[]
}

/** A chunk as it is written to the index. */
export interface IndexedChunk extends Terms {
  /** Derived from the document, its generation and the ordinal, so that a repeated write overwrites the chunk. */
  readonly chunkId: string
  readonly ordinal: number
  readonly text: string
  readonly headingPath: readonly string[]
  readonly pageStart: number | null
  readonly pageEnd: number | null
  readonly charStart: number
  readonly charEnd: number
  /** `ar`, `en` or null. Fusion reorders chunks only within a language. */
  readonly language: string | null
  /** Normalized to length 1. Adapters may store it as int8. */
  readonly vector: Float32Array
  /** Token embeddings that reorder results, at most 8 KB. Null or absent: the model returns none. */
  readonly tokenStates?: TokenEmbeddings | null
  /**
   * Text that precedes `text` when the vector and the terms are computed. May be empty. It is stored so that the terms
   * can be recomputed.
   */
  readonly context: string
}

/** Identifies one ingestion of a document, with the attributes of its chunks. */
export interface IndexedDocument {
  readonly organizationId: string
  readonly collectionId: string
  readonly documentId: string
  /**
   * Identifies one ingestion of the document. Chunks of several generations may coexist. The caller checks which are
   * live.
   */
  readonly generation: string
  /** Values that filters compare: file_name, media_type, language, created_at (ms), and `metadata.*`. */
  readonly attributes: Readonly<Record<string, string | number | boolean | null>>
}

/** The retrievers' input for a search in one collection. */
export interface ChunkQuery {
  readonly collectionId: string
  /** Null disables the vector retriever, and candidates have no cosine. */
  readonly vector: Float32Array | null
  /**
   * Another vector of length 1. Its cosine is computed for every candidate, but it finds no candidates. Default: null.
   */
  readonly anchor?: Float32Array | null
  /** Distinct stems and 3-grams of the query. Empty arrays disable the lexical retrievers. */
  readonly words: readonly string[]
  readonly grams: readonly string[]
  /** Candidates per retriever, 1 to 1000. */
  readonly candidates: number
  readonly filter: SearchFilter | null
}

/** A chunk that a retriever found. Every candidate has the figures of all retrievers, whichever found it. */
export interface ChunkCandidate {
  readonly chunkId: string
  readonly documentId: string
  readonly generation: string
  readonly language: string | null
  /** -1 to 1. Null without a query vector. */
  readonly cosine: number | null
  /** -1 to 1. Null without an anchor. */
  readonly anchorCosine: number | null
  /**
   * BM25 divided by the query's maximum: 0 to 1. k1 is 1.2, b is 0.75, and idf is ln(1 + (n - df + 0.5) / (df + 0.5))
   * over the collection.
   */
  readonly wordCoverage: number
  readonly gramCoverage: number
}

/** A chunk as it is read from the index, without its vector and terms. */
export interface StoredChunk extends Omit<IndexedChunk, 'vector' | 'tokenStates' | 'context' | keyof Terms> {
  readonly organizationId: string
  readonly collectionId: string
  readonly documentId: string
  readonly generation: string
}

/** A collection that has chunks in the index. */
export interface IndexedCollection {
  readonly collectionId: string
  readonly chunks: number
  /**
   * True if searches of a collection of this size are slow in this adapter and another adapter suits it better.
   * Default: false.
   */
  readonly isLarge?: boolean
}

/** Counts of the indexed chunks of one ingestion of a document. */
export interface IndexedGeneration {
  readonly documentId: string
  readonly generation: string
  /** At least 1. If it equals `lastOrdinal` + 1, no chunk is missing up to `lastOrdinal`. */
  readonly chunks: number
  readonly lastOrdinal: number
}

/**
 * The input from which a chunk's terms are computed. `context` is null for chunks from versions that did not store it.
 */
export interface ChunkText extends Pick<IndexedChunk, 'text' | 'headingPath'> {
  readonly context: string | null
}

/** Returns the terms of at most 256 chunks, in the same order. */
export type ToTerms = (chunks: readonly ChunkText[]) => Promise<readonly Terms[]>

/** The result of one step of a rebuild. */
export interface RebuildStep {
  /** Chunks copied in this step. */
  readonly chunks: number
  /** The `after` of the next step. Null: the rebuild is complete. */
  readonly next: string | null
}

/**
 * Chunks with vectors and terms, searchable by both. Everything in the index can be recreated from the primary store.
 * Every call may be repeated. Adapters pass `test/contract/chunk-index.ts`.
 * @throws {ServiceUnavailable} in any method: the index did not respond
 * @throws {KisError} `index_rebuilding`, in searches and writes: an index of an earlier version is being rebuilt
 */
export interface ChunkIndex extends AsyncDisposable {
  /** Prepares the index for a collection whose vectors have these dimensions. Idempotent. */
  createCollection(collection: {
    readonly organizationId: string
    readonly collectionId: string
    readonly dimensions: number
  }): Promise<void>
  /** Deletes the collection's chunks and its index structures. Idempotent. */
  dropCollection(collectionId: string): Promise<void>
  /** Whether `createCollection` has prepared the index for the collection. */
  hasCollection(collectionId: string): Promise<boolean>
  /**
   * Writes or replaces at most 256 chunks, in one transaction if the adapter supports transactions.
   * @throws {KisError} `invalid_request`: a vector has other dimensions or is not finite, or token embeddings exceed 8
   * KB
   */
  put(document: IndexedDocument, chunks: readonly IndexedChunk[]): Promise<void>
  /**
   * Replaces the attributes of all chunks of one ingestion. Later searches filter by the new values. An adapter that
   * does not store terms beside its index recomputes them with `toTerms`. Idempotent.
   */
  setAttributes(document: IndexedDocument, toTerms: ToTerms): Promise<void>
  /** Returns the indexed ordinals of this generation, ascending. They show where an interrupted ingestion resumes. */
  ordinals(collectionId: string, documentId: string, generation: string): Promise<readonly number[]>
  /**
   * Deletes a document's chunks: all of them, or all except those of one generation. Later searches do not find them.
   * Idempotent.
   */
  deleteDocument(collectionId: string, documentId: string, exceptGeneration?: string): Promise<void>
  /** Deletes only the chunks of one ingestion. Later searches do not find them. Idempotent. */
  deleteGeneration(collectionId: string, documentId: string, generation: string): Promise<void>
  /**
   * Lists collections that have chunks, also those without `createCollection`, in ascending order of IDs. Starts after
   * the ID `after` (`''`: from the first) and returns at most `limit` (1 to 1000).
   */
  listCollections(after: string, limit: number): Promise<readonly IndexedCollection[]>
  /**
   * Lists ingestions in ascending order of documents and generations. Starts after the document `after` (`''`: from the
   * first) and returns at most `limit` (1 to 1000).
   */
  listGenerations(collectionId: string, after: string, limit: number): Promise<readonly IndexedGeneration[]>
  /** Returns the union of all retrievers' candidates, unordered. Empty for a collection without chunks. */
  search(query: ChunkQuery, signal: AbortSignal): Promise<readonly ChunkCandidate[]>
  /** Returns at most 1000 chunks in the order of the IDs. Omits chunks that do not exist. */
  get(collectionId: string, chunkIds: readonly string[]): Promise<readonly StoredChunk[]>
  /** Returns the token embeddings of at most 100 chunks by ID. Omits chunks without token embeddings. */
  tokenEmbeddings(collectionId: string, chunkIds: readonly string[]): Promise<ReadonlyMap<string, TokenEmbeddings>>
  /**
   * Performs one step of rebuilding the whole index in the current layout, with terms from `toTerms`. The index stays
   * in use: searches see each chunk exactly once, and no write or deletion is lost. Pass null as `after` to start or to
   * resume an interrupted rebuild, then `next` of the previous step. A step takes some seconds and may be repeated. Two
   * rebuilds may run concurrently.
   * @throws {KisError} `invalid_request`: `after` did not come from a step
   */
  rebuild(after: string | null, toTerms: ToTerms, signal: AbortSignal): Promise<RebuildStep>
  /**
   * Replaces an unreadable index (corrupted, lost, or another installation's) with an empty one. The old index is
   * retained beside the new one. Returns false, and changes nothing, if the index is readable.
   */
  replaceUnreadable(): Promise<boolean>
  /**
   * Removes deleted data from the files of the index, in adapters whose deletions do not remove it at once. May take
   * minutes and much I/O. Exactly one process calls it, daily.
   */
  expunge(signal: AbortSignal): Promise<void>
  /** @throws {Error} the index cannot serve requests */
  ping(signal: AbortSignal): Promise<void>
}
