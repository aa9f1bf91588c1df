import type { estypes } from '@elastic/elasticsearch'

/** Names of everything the adapter keeps in Elasticsearch. */
export interface IndexNames {
  /** One small document for each collection: its organization and the length of its vectors. */
  readonly collections: string
  /**
   * Alias of all indices of chunks, including one that is being filled: for lookups by collection alone, and for
   * deletions.
   */
  readonly allChunks: string
  /**
   * Alias of the index with vectors of this length, for searches and writes. While a new one is being filled, it covers
   * both: see `rebuild.ts`.
   */
  chunks(dimensions: number): string
  /** Whether a name is one that `chunks` gives. */
  isChunks(name: string): boolean
  /** An index behind that alias. Each rebuild uses the next number. */
  built(dimensions: number, number: number): string
  /** The arguments of `built` for this name; undefined when it is another name. */
  parseIndexName(index: string): { readonly dimensions: number; readonly number: number } | undefined
  /** Everything of this installation, but nothing of one whose prefix begins like this one's. */
  readonly patterns: readonly [collections: string, chunks: string]
}

export interface IndexSize {
  /** Primary shards of an index of chunks. A collection is in one of them. */
  readonly shards: number
  readonly replicas: number
}

/**
 * A write waits until it is visible, half of this on average. With an explicit interval, Elasticsearch also never
 * pauses refreshes of an idle index, which would delay its next write.
 */
const REFRESH_INTERVAL = '200ms'
/**
 * Edges of a node in the graph of vectors, and nodes visited to insert one. More than the server's 16 and 100, for
 * recall with filters.
 */
const HNSW = { m: 24, ef_construction: 200 } as const

/** Expunging rewrites every segment with deleted data, however little it is. */
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
 * The id of an entry: chunk ids are unique within a collection only. Deterministic, so that a repeated write
 * overwrites.
 */
export function entryId(collectionId: string, chunkId: string): string {
  return `${collectionId}/${chunkId}`
}

export function readChunkId(collectionId: string, id: string): string {
  return id.slice(collectionId.length + 1)
}

export const COLLECTIONS_MAPPING = {
  dynamic: 'strict',
  properties: { organization_id: { type: 'keyword' }, dimensions: { type: 'integer' } },
} as const satisfies estypes.MappingTypeMapping

/** The service makes the terms. The server's BM25 has the port's k1 and b by default. */
const TERMS = { type: 'text', analyzer: 'whitespace', index_options: 'freqs' } as const
const UNSEARCHED = { type: 'keyword', index: false, doc_values: false } as const

/** Fields that indices of the first layout lack until a start adds them. */
export const ADDED_FIELDS = {
  /** What the terms were made from, besides the text. */
  context: UNSEARCHED,
  /** Base64. Read by id only, from `_source`. */
  token_states: { type: 'binary', doc_values: false },
  /** Copied by a rebuild, and not written by the service since. */
  copied: { type: 'boolean' },
} as const satisfies Record<string, estypes.MappingProperty>

/** Fields that have another type in indices of earlier layouts. They work, but find words without weights. */
export const EARLIER_FIELDS = {
  words: { type: 'keyword', doc_values: false, similarity: 'boolean' },
  grams: { type: 'keyword', doc_values: false, similarity: 'boolean' },
} as const satisfies Record<string, estypes.MappingProperty>

/**
 * Lets searches see each entry of an index that is being filled once: here if it was written, in the old index if it
 * was copied.
 */
export const NOT_COPIED = { bool: { must_not: [{ term: { copied: true } }] } } satisfies estypes.QueryDslQueryContainer

export function chunksMapping(dimensions: number) {
  return {
    dynamic: 'strict',
    // Many times the size of the text, and can be made from it again.
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

/** An index that no alias names yet. */
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
