import type { BillingContext } from './billing.ts'

/** Collections, as agents need them. A GraphQL client of knowledge implements it. */
export interface Knowledge {
  /**
   * Describes the collections, in the order of the ids. Leaves out those that do not exist or belong to another
   * organization.
   */
  describe(collectionIds: readonly string[], context: BillingContext): Promise<readonly CollectionDescription[]>
  /**
   * @throws {KisError} `not_found`: there is no such collection
   * @throws {KisError} `model_not_found`: the key may not use the collection's embedding model
   * @throws {KisError} `run_limit_exceeded`, `insufficient_quota`: the embedding of the query cannot be paid
   */
  search(query: ChunkQuery, context: BillingContext): Promise<FoundChunks>
  /**
   * Returns the bytes of a file.
   * @throws {KisError} `not_found`, with `param`: there is no such file
   * @throws {KisError} `payload_too_large`: the file has more than `mostBytes`
   */
  readFile(fileId: string, param: string, mostBytes: number, context: BillingContext): Promise<Uint8Array>
}

export interface CollectionDescription {
  readonly id: string
  readonly code: string
  readonly name: string
  readonly description: string | null
  readonly chunkCount: number
  readonly contents: CollectionContents
}

/** A summary of a collection. Titles and headings are untrusted text from the documents. */
export interface CollectionContents {
  /** The number of documents that searches can find. */
  readonly documentCount: number
  /** How many of the newest documents were examined for languages, titles and headings. */
  readonly examinedCount: number
  /** Most frequent first; `ar`, `en` or null. */
  readonly languages: readonly { readonly language: string | null; readonly documentCount: number }[]
  /** Titles of the longest documents, longest first. */
  readonly titles: readonly { readonly title: string | null; readonly fileName: string }[]
  readonly headings: readonly string[]
  /** When the first and the last document was attached, in ISO 8601. Null: the collection has no documents. */
  readonly oldestAt: string | null
  readonly newestAt: string | null
}

/** One search in a collection. */
export interface ChunkQuery {
  readonly collectionId: string
  readonly query: string
  /** 1 to 50. */
  readonly limit: number
  /** The filter of `searchCollection`. */
  readonly filter: unknown
  /**
   * Set for a search that is a step of a run: the embedding of its query is charged once, however often the search is
   * repeated.
   */
  readonly step?: { readonly runId: string; readonly path: string }
}

/** The result of one search. */
export interface FoundChunks {
  /** Best first. */
  readonly passages: readonly FoundChunk[]
  /** The charge for the embedding of the query, in nano-USD. */
  readonly cost: bigint
}

/** A chunk and its location. Offsets are UTF-16 units of the document's text. Pages count from 1; null: no pages. */
export interface FoundChunk {
  readonly chunkId: string
  readonly collectionId: string
  readonly documentId: string
  readonly fileId: string
  readonly fileName: string
  readonly text: string
  readonly headingPath: readonly string[]
  readonly pageStart: number | null
  readonly pageEnd: number | null
  readonly charStart: number
  readonly charEnd: number
  readonly score: number
}
