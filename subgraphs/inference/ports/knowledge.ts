import type { BillingContext } from './billing.ts'

/** Collections, as agents need them: a GraphQL client of knowledge stands behind it. */
export interface Knowledge {
  /** Those that there are, in the order of the ids; another organization's are left out like those that are gone. */
  describe(collectionIds: readonly string[], context: BillingContext): Promise<readonly CollectionDescription[]>
  /** @throws {KisError} `not_found`, `model_not_found`: the key may not use the collection's embedding model; `run_limit_exceeded`, `insufficient_quota`. */
  search(query: PassageQuery, context: BillingContext): Promise<FoundPassages>
  /** A file's bytes. @throws {KisError} `not_found` with `param`; `payload_too_large`: it has more than `mostBytes`. */
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

/** What is in a collection, in few words. Titles and headings are documents' own words, and so anybody's. */
export interface CollectionContents {
  /** Documents that searches find. */
  readonly documentCount: number
  /** Of them the newest, which languages, titles and headings are those of. */
  readonly examinedCount: number
  /** Most documents first; `ar`, `en` or null. */
  readonly languages: readonly { readonly language: string | null; readonly documentCount: number }[]
  /** Of the longest documents, longest first. */
  readonly titles: readonly { readonly title: string | null; readonly fileName: string }[]
  readonly headings: readonly string[]
  /** When the first and the last of the documents was attached, in ISO 8601; null: there is none. */
  readonly oldestAt: string | null
  readonly newestAt: string | null
}

export interface PassageQuery {
  readonly collectionId: string
  readonly query: string
  /** 1 to 50. */
  readonly limit: number
  /** As `searchCollection` takes it. */
  readonly filter: unknown
  /** Of a search that is a step of a run: its embedding is paid once, however often the search is made. */
  readonly step?: { readonly runId: string; readonly path: string }
}

export interface FoundPassages {
  /** Best first. */
  readonly passages: readonly Passage[]
  /** Nano-USD that the embedding of the query was charged. */
  readonly cost: bigint
}

/** A chunk with where it stands; offsets are UTF-16 units of the document's text, pages are one-based or null. */
export interface Passage {
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
