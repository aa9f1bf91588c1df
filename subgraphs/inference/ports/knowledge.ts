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
  readonly documentCount: number
  readonly chunkCount: number
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
