import type { SearchFilter } from '../domain/search/search-filter.ts'
import type { TokenEmbeddings } from './inference.ts'

/** Made by `domain/text-analysis.ts`. Adapters index them unchanged. */
export interface Terms {
  /** Light stems, in order, with repeats. */
  readonly words: readonly string[]
  /** 3-grams inside each word with its edges marked, in order, with repeats. */
  readonly grams: readonly string[]
}

/** A passage with what searches need of it. */
export interface IndexedChunk extends Terms {
  /** Derived from the document, its generation and the ordinal, so that a repeated write overwrites. */
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
  /** Length 1. Adapters may store it as int8. */
  readonly vector: Float32Array
  /** What searches compare token by token, at most 8 KB. Null or absent: the vector's model gives none. */
  readonly tokenStates?: TokenEmbeddings | null
  /**
   * The text before `text` from which the vector and the terms are also made; may be empty. Kept so that the terms can
   * be made again.
   */
  readonly context: string
}

export interface IndexedDocument {
  readonly organizationId: string
  readonly collectionId: string
  readonly documentId: string
  /**
   * Names one ingestion of the document. Chunks of different generations may exist at once; the caller checks which are
   * live.
   */
  readonly generation: string
  /** Facts for filters: file_name, media_type, language, created_at (ms), and `metadata.*`. */
  readonly attributes: Readonly<Record<string, string | number | boolean | null>>
}

export interface ChunkQuery {
  readonly collectionId: string
  /** Null: no vector leg, and candidates have no cosine. */
  readonly vector: Float32Array | null
  /** Another vector of length 1 that every candidate is compared with. It finds none. Default: null. */
  readonly anchor?: Float32Array | null
  /** Distinct stems and 3-grams of the query. Empty: no lexical legs. */
  readonly words: readonly string[]
  readonly grams: readonly string[]
  /** Candidates of each leg, 1 to 1000. */
  readonly candidates: number
  readonly filter: SearchFilter | null
}

/** A chunk that a leg found. Every candidate has the figures of all legs, whichever leg found it. */
export interface ChunkCandidate {
  readonly chunkId: string
  readonly documentId: string
  readonly generation: string
  readonly language: string | null
  /** -1 to 1; null without a query vector. */
  readonly cosine: number | null
  /** -1 to 1; null without an anchor. */
  readonly anchorCosine: number | null
  /**
   * BM25 (k1 1.2, b .75, idf ln(1 + (n - df + .5) / (df + .5)) over the collection) divided by the query's maximum: 0
   * to 1.
   */
  readonly wordCoverage: number
  readonly gramCoverage: number
}

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
  /** Searches of a collection of this size take long in this index: another one serves it better. Default: false. */
  readonly isLarge?: boolean
}

/** What the index has of one ingestion of a document. */
export interface IndexedGeneration {
  readonly documentId: string
  readonly generation: string
  /** At least 1. If `lastOrdinal` is one less, all from 0 on exist. */
  readonly chunks: number
  readonly lastOrdinal: number
}

/** What a chunk's terms are made from. `context` is null for chunks that were written before it was kept. */
export interface ChunkText extends Pick<IndexedChunk, 'text' | 'headingPath'> {
  readonly context: string | null
}

/** Gives the terms of passages, in order, at most 256. */
export type ToTerms = (chunks: readonly ChunkText[]) => Promise<readonly Terms[]>

export interface RebuildStep {
  /** Chunks taken over in this step. */
  readonly chunks: number
  /** Where the next step begins; null: the rebuild is complete. */
  readonly next: string | null
}

/**
 * Chunks with their vectors and terms, searchable by both. Derived: everything in it can be made again from the primary
 * store. Every call may be repeated. Adapters pass `test/contract/chunk-index.ts`.
 * @throws {ServiceUnavailable} in any method: the index did not answer
 * @throws {KisError} `index_rebuilding`, in searches and writes: an index of an earlier version is being rebuilt
 */
export interface ChunkIndex extends AsyncDisposable {
  /** Makes room for a collection whose vectors have this length. Idempotent. */
  createCollection(collection: {
    readonly organizationId: string
    readonly collectionId: string
    readonly dimensions: number
  }): Promise<void>
  /** Deletes everything of the collection. Idempotent. */
  dropCollection(collectionId: string): Promise<void>
  /** Whether `createCollection` has made room for it. */
  hasCollection(collectionId: string): Promise<boolean>
  /**
   * Writes or replaces at most 256 chunks, in one transaction if the adapter has them.
   * @throws {KisError} `invalid_request`: a vector has another length or is not finite, or token states are longer than
   * 8 KB
   */
  put(document: IndexedDocument, chunks: readonly IndexedChunk[]): Promise<void>
  /**
   * Gives all chunks of one ingestion these attributes in place of theirs. Later searches filter by them. `toTerms`
   * makes the terms again where an adapter keeps none beside its index. Idempotent.
   */
  setAttributes(document: IndexedDocument, toTerms: ToTerms): Promise<void>
  /** The existing ordinals of this generation, ascending: they show where an interrupted ingestion continues. */
  ordinals(collectionId: string, documentId: string, generation: string): Promise<readonly number[]>
  /**
   * Deletes a document's chunks: all of them, or all but those of one generation. Later searches do not find them.
   * Idempotent.
   */
  deleteDocument(collectionId: string, documentId: string, exceptGeneration?: string): Promise<void>
  /** Deletes only the chunks of one ingestion. Later searches do not find them. Idempotent. */
  deleteGeneration(collectionId: string, documentId: string, generation: string): Promise<void>
  /**
   * Collections that have chunks, even without room, in ascending order of ids: those after `after` (`''`: all), at
   * most `limit`, 1 to 1000.
   */
  listCollections(after: string, limit: number): Promise<readonly IndexedCollection[]>
  /**
   * In ascending order of documents and generations: those of documents after `after` (`''`: all), at most `limit`, 1
   * to 1000.
   */
  listGenerations(collectionId: string, after: string, limit: number): Promise<readonly IndexedGeneration[]>
  /** The union of the legs' candidates, in no particular order; empty for a collection without chunks. */
  search(query: ChunkQuery, signal: AbortSignal): Promise<readonly ChunkCandidate[]>
  /** In the order of the ids. Those that do not exist are left out. At most 1000. */
  get(collectionId: string, chunkIds: readonly string[]): Promise<readonly StoredChunk[]>
  /** The token states of these chunks, by id. Chunks without them are left out. At most 100. */
  tokenEmbeddings(collectionId: string, chunkIds: readonly string[]): Promise<ReadonlyMap<string, TokenEmbeddings>>
  /**
   * Makes one step of rebuilding the whole index, in the current layout and with the terms of `toTerms`, while it is in
   * use: searches see each chunk once throughout, and no write or deletion is lost. `after` is null to begin, which
   * continues an interrupted rebuild; then it is `next` of the step before. A step takes some seconds, and may be
   * repeated. Two concurrent rebuilds do no harm.
   * @throws {KisError} `invalid_request`: `after` did not come from a step
   */
  rebuild(after: string | null, toTerms: ToTerms, signal: AbortSignal): Promise<RebuildStep>
  /**
   * Replaces an index that cannot be read (damaged, lost, or another installation's) by an empty one. What existed is
   * kept beside it. False: the index can be read, and nothing was done.
   */
  replaceUnreadable(): Promise<boolean>
  /**
   * Removes what is deleted from the files of the index, where an adapter does not do so with each deletion. May take
   * minutes, and much I/O. One process of all calls it, daily.
   */
  expunge(signal: AbortSignal): Promise<void>
  /** @throws {Error} it cannot serve */
  ping(signal: AbortSignal): Promise<void>
}
