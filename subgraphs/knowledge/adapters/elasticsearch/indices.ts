import type { estypes } from '@elastic/elasticsearch'

/** Names of all indices and aliases of the adapter. */
export interface IndexNames {
  /** Index with one small document per collection: its organization and its vectors' dimensions. */
  readonly collections: string
  /**
   * Alias of all indices of chunks, including one that is being filled: for lookups by collection alone, and for
   * deletions.
   */
  readonly allChunks: string
  /**
   * Alias of the index with vectors of these dimensions, for searches and writes. While a new index is being filled, it
   * covers both: see `rebuild.ts`.
   */
  chunks(dimensions: number): string
  /** Whether a name is a result of `chunks`. */
  isChunks(name: string): boolean
  /** Returns the name of an index behind that alias. Each rebuild uses the next number. */
  built(dimensions: number, number: number): string
  /** Returns the arguments of `built` for this name, or undefined for another name. */
  parseIndexName(index: string): { readonly dimensions: number; readonly number: number } | undefined
  /** Patterns of all indices of this installation, but of none with a longer prefix. */
  readonly patterns: readonly [collections: string, chunks: string]
}

/** The size of new indices. */
export interface IndexSize {
  /** Primary shards of an index of chunks. A collection is in one of them. */
  readonly shards: number
  readonly replicas: number
}

/**
 * A write waits until it is visible, half of this interval on average. With an explicit interval, Elasticsearch also
 * never pauses refreshes of an idle index, which would delay its next write.
 */
const REFRESH_INTERVAL = '200ms'
/**
 * Edges per node in the graph of vectors, and nodes visited per insertion. They exceed the server's 16 and 100, for
 * recall with filters.
 */
const HNSW = { m: 24, ef_construction: 200 } as const

/** Makes expunging rewrite every segment with deleted data, however little it is. */
export const EXPUNGE_ALL = { 'index.merge.policy.expunge_deletes_allowed': 0 } as const

export function indexNames(prefix: string): IndexNames {
  const chunks = (dimensions: number) => `${prefix}-chunks-${dimensions}`
  return {
    collections: `${prefix}-collections`,
    allChunks: `${prefix}-chunks`,
    chunks,
    isChunks: (name) => name.startsWith(`${prefix}-chunks-`) && /^\d+$/.test(name.slice(`${prefix}-chunks-`.length)),
    built: (dimensions, number) => `${chunks(dimensions)}-${number}`,
    parseIndexName(index) {
      const match = index.startsWith(`${prefix}-chunks-`) && /^(\d+)-(\d+)$/.exec(index.slice(`${prefix}-chunks-`.length))
      return match ? { dimensions: Number(match[1]), number: Number(match[2]) } : undefined
    },
    patterns: [`${prefix}-collections`, `${prefix}-chunks*`],
  }
}

/**
 * Returns the ID of an entry, because chunk IDs are unique only within a collection. It is deterministic, so that a
 * repeated write overwrites.
 */
export function entryId(collectionId: string, chunkId: string): string {
  return `${collectionId}/${chunkId}`
}

/** Returns the chunk ID of an entry ID. */
export function readChunkId(collectionId: string, id: string): string {
  return id.slice(collectionId.length + 1)
}

export const COLLECTIONS_MAPPING = {
  dynamic: 'strict',
  properties: { organization_id: { type: 'keyword' }, dimensions: { type: 'integer' } },
} as const satisfies estypes.MappingTypeMapping

/** The service computes the terms. The server's BM25 has the port's k1 and b by default. */
const TERMS = { type: 'text', analyzer: 'whitespace', index_options: 'freqs' } as const
const UNSEARCHED = { type: 'keyword', index: false, doc_values: false } as const

/** Fields that indices of the first layout lack until a start adds them. */
export const ADDED_FIELDS = {
  /** Part of the terms' input, besides the text. */
  context: UNSEARCHED,
  /** Base64. Read only by ID, from `_source`. */
  token_states: { type: 'binary', doc_values: false },
  /** True: a rebuild has copied the entry, and the service has not written it since. */
  copied: { type: 'boolean' },
} as const satisfies Record<string, estypes.MappingProperty>

/** Fields that have another type in indices of earlier layouts. They work, but lexical search has no weights there. */
export const EARLIER_FIELDS = {
  words: { type: 'keyword', doc_values: false, similarity: 'boolean' },
  grams: { type: 'keyword', doc_values: false, similarity: 'boolean' },
} as const satisfies Record<string, estypes.MappingProperty>

/**
 * Filter that lets searches see each entry once while an index is being filled: in the new index if it was written, in
 * the old index if it was copied.
 */
export const NOT_COPIED = { bool: { must_not: [{ term: { copied: true } }] } } satisfies estypes.QueryDslQueryContainer

export function chunksMapping(dimensions: number) {
  return {
    dynamic: 'strict',
    // Terms are many times the size of the text, and can be recomputed from it.
    _source: { excludes: ['words', 'grams'] },
    _routing: { required: true },
    properties: {
      organization_id: { type: 'keyword' },
      collection_id: { type: 'keyword' },
      document_id: { type: 'keyword' },
      generation: { type: 'keyword' },
      ordinal: { type: 'integer' },
      text: { type: 'text', index: false },
      heading_path: UNSEARCHED,
      ...ADDED_FIELDS,
      page_start: { type: 'integer' },
      page_end: { type: 'integer' },
      char_start: { type: 'integer', index: false, doc_values: false },
      char_end: { type: 'integer', index: false, doc_values: false },
      language: { type: 'keyword' },
      attributes: { type: 'keyword', doc_values: false },
      words: TERMS,
      grams: TERMS,
      word_count: { type: 'integer', index: false },
      gram_count: { type: 'integer', index: false },
      term_counts: { type: 'binary', doc_values: true },
      vector: {
        type: 'dense_vector',
        dims: dimensions,
        index: true,
        similarity: 'cosine',
        index_options: { type: 'int8_hnsw', ...HNSW },
      },
    },
  } as const satisfies estypes.MappingTypeMapping
}

/** Returns a new index that no alias names yet. */
export function nextChunksIndex(names: IndexNames, dimensions: number, number: number, size: IndexSize) {
  return {
    index: names.built(dimensions, number),
    settings: { number_of_shards: size.shards, number_of_replicas: size.replicas, refresh_interval: REFRESH_INTERVAL, ...EXPUNGE_ALL },
    mappings: chunksMapping(dimensions),
  } satisfies estypes.IndicesCreateRequest
}

export function collectionsIndex(names: IndexNames, size: IndexSize) {
  return {
    index: names.collections,
    settings: { number_of_shards: 1, number_of_replicas: size.replicas },
    mappings: COLLECTIONS_MAPPING,
  } satisfies estypes.IndicesCreateRequest
}
