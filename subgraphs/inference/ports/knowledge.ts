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
   * Gives the bytes of a file.
   * @throws {KisError} `not_found`, with `param`: there is no such file
   * @throws {KisError} `payload_too_large`: it has more than `mostBytes`
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

/** A summary of a collection. Titles and headings are the documents' own words, which anybody may have written. */
export interface CollectionContents {
  /** Documents that searches find. */
  readonly documentCount: number
  /** How many of them, the newest, were examined for languages, titles and headings. */
  readonly examinedCount: number
  /** Most frequent first; `ar`, `en` or null. */
  readonly languages: readonly { readonly language: string | null; readonly documentCount: number }[]
  /** Of the longest documents, longest first. */
  readonly titles: readonly { readonly title: string | null; readonly fileName: string }[]
  readonly headings: readonly string[]
  /** When the first and the last document was attached, in ISO 8601; null: there are none. */
  readonly oldestAt: string | null
  readonly newestAt: string | null
}

export interface ChunkQuery {
  readonly collectionId: string
  readonly query: string
  /** 1 to 50. */
  readonly limit: number
  /** As `searchCollection` takes it. */
  readonly filter: unknown
  /** For a search that is a step of a run: its embedding is paid once, however often the search is repeated. */
  readonly step?: { readonly runId: string; readonly path: string }
}

export interface FoundChunks {
  /** Best first. */
  readonly passages: readonly FoundChunk[]
  /** What the embedding of the query was charged, in nano-USD. */
  readonly cost: bigint
}

/** A chunk and its place: offsets are UTF-16 units of the document's text, pages count from 1 or are null. */
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
