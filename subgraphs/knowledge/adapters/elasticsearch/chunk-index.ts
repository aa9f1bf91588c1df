import type { Client, estypes } from '@elastic/elasticsearch'
import { KisError } from '../../../common/errors.ts'
import { explainMismatch, type Installation } from '../../../common/identity/installation.ts'
import type { Log } from '../../../common/process/log.ts'
import { MAX_TOKEN_EMBEDDINGS_BYTES } from '../../domain/search/max-sim.ts'
import type {
  ChunkCandidate,
  ChunkIndex,
  ChunkQuery,
  IndexedChunk,
  IndexedCollection,
  IndexedDocument,
  IndexedGeneration,
  RebuildStep,
  StoredChunk,
  ToTerms,
} from '../../ports/chunk-index.ts'
import type { TokenEmbeddings } from '../../ports/inference.ts'
import { awaitResponse, checkItems, elasticsearchClient, readStatus, toFailure } from './client.ts'
import { createIndex } from './create-index.ts'
import { type ChunkSource, COPIED, type EntrySource, toEntry, toStoredChunk, withAttributes } from './entries.ts'
import { FairReads, MAX_WAITING_SEARCHES } from './fair-reads.ts'
import {
  ADDED_FIELDS,
  collectionsIndex,
  EARLIER_FIELDS,
  EXPUNGE_ALL,
  entryId,
  type IndexNames,
  type IndexSize,
  indexNames,
  nextChunksIndex,
  readChunkId,
} from './indices.ts'
import { move, rebuildStep, writtenIndex } from './rebuild.ts'
import { search, searchAll } from './search.ts'
import { checkStart, rethrowUnfit } from './start-check.ts'
import { termMark } from './term-counts.ts'

const MAX_CHUNKS_PER_PUT = 256
const MAX_CANDIDATES = 1_000
const MAX_CHUNKS_PER_GET = 1_000
const MAX_TOKEN_EMBEDDINGS_PER_GET = 100
const MAX_LISTED = 1_000
/** The server's limit for one page of a search. */
const ORDINALS_PER_PAGE = 10_000
/** 256 chunks are about 5 MB of JSON and 256 nodes in the graph of vectors, which take seconds on a busy server. */
const PUT_TIMEOUT_MS = 30_000
/** Deleting a collection of a million chunks takes a minute or two. */
const DELETE_TIMEOUT_MS = 300_000
/** Expunging a million chunks takes some twelve minutes of CPU. */
const EXPUNGE_TIMEOUT_MS = 1_800_000
/**
 * A chunk that is written during its deletion is a conflict. Each pass deletes those of the previous pass, and the last
 * one finds none.
 */
const MAX_DELETE_PASSES = 5
/** A rebuild takes minutes, so a second one does not start between the attempts. */
const MAX_PUT_PASSES = 3

export interface ElasticsearchOptions {
  /** Format of `KIS_ELASTICSEARCH_URL`: one or several addresses, which may contain `user:password@`. */
  readonly url: string
  readonly apiKey?: string | undefined
  /** Prefix of all index names, so that several installations can share a cluster. Default: `kis`. */
  readonly prefix?: string | undefined
  /** Default: one shard, one replica. */
  readonly size?: IndexSize | undefined
  /** The installation to which the indices must belong, read after the server's check. Absent: any. */
  readonly installation?: () => Promise<Installation>
  readonly log: Log
}

/**
 * Opens the chunk index in Elasticsearch 9 or newer: one index for each number of dimensions, routed by collection.
 * @throws {Unfit} it cannot work; the message has every reason, without credentials
 */
export async function openElasticsearchChunkIndex(options: ElasticsearchOptions): Promise<ChunkIndex> {
  const { url, apiKey, prefix = 'kis', size = { shards: 1, replicas: 1 }, installation, log } = options
  const client = elasticsearchClient(url, apiKey)
  try {
    const names = indexNames(prefix)
    await checkStart(client, names)
    if (!(await awaitResponse(client.indices.exists({ index: names.collections }))))
      await createIndex(client, collectionsIndex(names, size)).catch(rethrowUnfit)
    await bringUpToDate(client, names).catch(rethrowUnfit)
    if (installation) await claim(client, names, await installation())
    log.info({ prefix }, 'The chunk index is in Elasticsearch')
    if (await hasEarlierFields(client, names))
      log.warn(
        {},
        'the indices in Elasticsearch have an earlier layout, in which words find less well. Run `kis reindex` once: it embeds nothing, and searches continue meanwhile',
      )
    return new ElasticsearchChunkIndex(client, names, size)
  } catch (error) {
    await client.close()
    throw error
  }
}

/** Updates indices of earlier layouts to the current one. */
async function bringUpToDate(client: Client, { allChunks: index }: IndexNames): Promise<void> {
  await awaitResponse(client.indices.putMapping({ index, ignore_unavailable: true, properties: ADDED_FIELDS }, { ignore: [404] }))
  await awaitResponse(client.indices.putSettings({ index, ignore_unavailable: true, settings: EXPUNGE_ALL }, { ignore: [404] }))
}

async function hasEarlierFields(client: Client, { allChunks: index }: IndexNames): Promise<boolean> {
  const found = await awaitResponse(client.indices.getMapping({ index, ignore_unavailable: true }, { ignore: [404] }))
  return Object.values(found).some(({ mappings }) => mappings?.properties?.words?.type === EARLIER_FIELDS.words.type)
}

/**
 * Marks unmarked indices as the installation's.
 * @throws {Error} the indices have another installation's mark
 */
async function claim(client: Client, { collections }: IndexNames, own: Installation): Promise<void> {
  const found = await awaitResponse(client.indices.getMapping({ index: collections }))
  const { installation: mark } = (Object.values(found)[0]?.mappings._meta ?? {}) as { readonly installation?: Installation }
  const problem = mark && explainMismatch(`The index ${collections} in Elasticsearch`, mark, own)
  if (problem) throw new Error(problem)
  if (!mark) await awaitResponse(client.indices.putMapping({ index: collections, _meta: { installation: { id: own.id } } }))
}

interface CollectionSource {
  readonly organization_id: string
  readonly dimensions: number
}

class ElasticsearchChunkIndex implements ChunkIndex {
  readonly #client: Client
  readonly #names: IndexNames
  readonly #size: IndexSize
  readonly #reads = new FairReads(async (collectionId) => (await this.#collection(collectionId))?.organization_id)

  constructor(client: Client, names: IndexNames, size: IndexSize) {
    this.#client = client
    this.#names = names
    this.#size = size
  }

  async createCollection(collection: { organizationId: string; collectionId: string; dimensions: number }): Promise<void> {
    const { organizationId, collectionId, dimensions } = collection
    await this.#createChunks(dimensions)
    const created = this.#client.index(
      {
        index: this.#names.collections,
        id: collectionId,
        op_type: 'create',
        document: { organization_id: organizationId, dimensions } satisfies CollectionSource,
      },
      { ignore: [409] },
    )
    await awaitResponse(created)
    const found = await this.#collection(collectionId)
    if (found?.organization_id === organizationId && found.dimensions === dimensions) return
    throw new KisError('invalid_request', `Collection ${collectionId} exists with ${found?.dimensions} dimensions.`)
  }

  /**
   * Creates an index of chunks. It joins the alias of all chunks once it is searchable, so that searches of other
   * collections do not fail meanwhile.
   */
  async #createChunks(dimensions: number): Promise<void> {
    const alias = this.#names.chunks(dimensions)
    if (await awaitResponse(this.#client.indices.exists({ index: alias }))) return
    const request = nextChunksIndex(this.#names, dimensions, 1, this.#size)
    await createIndex(this.#client, request)
    await move(this.#client, [
      { add: { index: request.index, alias, is_write_index: true } },
      { add: { index: request.index, alias: this.#names.allChunks } },
    ])
  }

  async dropCollection(collectionId: string): Promise<void> {
    // Delete the collection's entry first, so that no more chunks are written.
    await awaitResponse(this.#client.delete({ index: this.#names.collections, id: collectionId }, { ignore: [404] }))
    await this.#deleteChunks(collectionId, [])
    this.#reads.evict(collectionId)
  }

  async hasCollection(collectionId: string): Promise<boolean> {
    return (await this.#collection(collectionId)) !== undefined
  }

  async put(document: IndexedDocument, chunks: readonly IndexedChunk[]): Promise<void> {
    atMost(chunks.length, MAX_CHUNKS_PER_PUT, 'chunks')
    const collection = await this.#collection(document.collectionId)
    if (!collection || collection.organization_id !== document.organizationId)
      throw new KisError('not_found', `The index has no collection ${document.collectionId}.`)
    for (const { chunkId, vector, tokenStates } of chunks) {
      checkVector(vector, collection.dimensions, `The vector of chunk ${chunkId}`)
      if (tokenStates && tokenStates.length > MAX_TOKEN_EMBEDDINGS_BYTES)
        throw new KisError(
          'invalid_request',
          `The token embeddings of chunk ${chunkId} have ${tokenStates.length} bytes; at most ${MAX_TOKEN_EMBEDDINGS_BYTES} are stored.`,
        )
    }
    if (chunks.length === 0) return
    const mark = termMark(document.collectionId)
    // Of equal IDs the last wins, as with sequential calls.
    const distinct = new Map(chunks.map((chunk) => [chunk.chunkId, chunk]))
    await this.#write(
      document.collectionId,
      collection.dimensions,
      [...distinct].map(([chunkId, chunk]) => [entryId(document.collectionId, chunkId), toEntry(document, chunk, mark)]),
    )
  }

  async setAttributes(document: IndexedDocument, toTerms: ToTerms): Promise<void> {
    const { collectionId, documentId, generation, attributes } = document
    const collection = await this.#collection(collectionId)
    if (!collection) return
    // A write that was interrupted before its response may exist but not be visible yet.
    await this.#refresh()
    const mark = termMark(collectionId)
    for (let after = -1; ; ) {
      const { hits } = await awaitResponse(
        this.#client.search<EntrySource>({
          index: this.#names.chunks(collection.dimensions),
          routing: collectionId,
          allow_partial_search_results: false,
          query: { bool: { filter: [...only({ collectionId, documentId }), { term: { generation } }] } },
          sort: [{ ordinal: 'asc' }],
          size: MAX_CHUNKS_PER_PUT,
          search_after: [after],
          _source: COPIED,
        }),
      )
      if (hits.hits.length === 0) return
      const sources = hits.hits.map(({ _source }) => _source!)
      const terms = await toTerms(sources.map(({ text, heading_path: headingPath, context = null }) => ({ text, headingPath, context })))
      const written = await this.#write(
        collectionId,
        collection.dimensions,
        hits.hits.map(({ _id }, i) => [_id!, withAttributes(sources[i]!, attributes, terms[i]!, mark)]),
      )
      // During a rebuild, the entry that was read may be in the old index. The entry in the new index has replaced it.
      const replaced = hits.hits.filter(({ _index }) => _index !== written)
      if (replaced.length > 0) {
        const operations = replaced.map(({ _id, _index }) => ({ delete: { _id: _id!, _index, routing: collectionId } }))
        const { items } = await awaitResponse(this.#client.bulk({ refresh: 'wait_for', operations }, { requestTimeout: PUT_TIMEOUT_MS }))
        checkItems(items.map((item) => item.delete!))
      }
      after = Number(hits.hits.at(-1)!.sort![0])
    }
  }

  /** Writes entries by ID, visible to searches. Returns the name of the index that has them. */
  async #write(
    collectionId: string,
    dimensions: number,
    entries: readonly (readonly [id: string, entry: ReturnType<typeof toEntry>])[],
  ): Promise<string | undefined> {
    const request = {
      index: this.#names.chunks(dimensions),
      routing: collectionId,
      // Without the alias, a write would create an index with an arbitrary mapping.
      require_alias: true,
      refresh: 'wait_for',
      operations: entries.flatMap(([_id, entry]) => [{ index: { _id } }, entry]),
    } as const
    for (let pass = 0; pass < MAX_PUT_PASSES; pass++) {
      const { items } = await awaitResponse(this.#client.bulk(request, { requestTimeout: PUT_TIMEOUT_MS }))
      checkItems(items.map(({ index }) => index!))
      // A rebuild that has started meanwhile may have copied the old index already. Later writes to the old index would
      // be lost.
      const written = await writtenIndex(this.#client, this.#names, dimensions)
      if (items.every(({ index }) => index!._index === written)) return written
    }
    throw toFailure(503, `the index was replaced while chunks were written, ${MAX_PUT_PASSES} times`)
  }

  async ordinals(collectionId: string, documentId: string, generation: string): Promise<readonly number[]> {
    // A write that was interrupted before its response may exist but not be visible yet.
    await this.#refresh()
    const found: number[] = []
    for (;;) {
      const { hits } = await awaitResponse(
        this.#client.search({
          index: this.#names.allChunks,
          routing: collectionId,
          ignore_unavailable: true,
          allow_partial_search_results: false,
          query: { bool: { filter: [...only({ collectionId, documentId }), { term: { generation } }] } },
          sort: [{ ordinal: 'asc' }],
          size: ORDINALS_PER_PAGE,
          _source: false,
          ...(found.length > 0 && { search_after: [found.at(-1)!] }),
        }),
      )
      found.push(...hits.hits.map(({ sort }) => Number(sort![0])))
      if (hits.hits.length < ORDINALS_PER_PAGE) return [...new Set(found)]
    }
  }

  async deleteDocument(collectionId: string, documentId: string, exceptGeneration?: string): Promise<void> {
    const exclusion = exceptGeneration === undefined ? [] : [{ bool: { must_not: [{ term: { generation: exceptGeneration } }] } }]
    await this.#deleteChunks(collectionId, [{ term: { document_id: documentId } }, ...exclusion])
  }

  async deleteGeneration(collectionId: string, documentId: string, generation: string): Promise<void> {
    await this.#deleteChunks(collectionId, [{ term: { document_id: documentId } }, { term: { generation } }])
  }

  async listCollections(after: string, limit: number): Promise<readonly IndexedCollection[]> {
    atMost(limit, MAX_LISTED, 'collections')
    const buckets = await this.#group({ filter: [{ range: { collection_id: { gt: after } } }] }, ['collection_id'], limit)
    return buckets.map(({ key, doc_count: chunks }) => ({ collectionId: String(key.collection_id), chunks }))
  }

  async listGenerations(collectionId: string, after: string, limit: number): Promise<readonly IndexedGeneration[]> {
    atMost(limit, MAX_LISTED, 'generations')
    const filter = [...only({ collectionId }), { range: { document_id: { gt: after } } }]
    const buckets = await this.#group({ filter, routing: collectionId }, ['document_id', 'generation'], limit)
    return buckets.map(({ key, doc_count: chunks, last }) => ({
      documentId: String(key.document_id),
      generation: String(key.generation),
      chunks,
      lastOrdinal: (last as estypes.AggregationsMaxAggregate).value!,
    }))
  }

  async search(query: ChunkQuery, signal: AbortSignal): Promise<readonly ChunkCandidate[]> {
    signal.throwIfAborted()
    if (!(query.candidates >= 1 && query.candidates <= MAX_CANDIDATES))
      throw new KisError('invalid_request', `A search has 1 to ${MAX_CANDIDATES} candidates, not ${query.candidates}.`)
    return this.#reads.run(query.collectionId, () => this.#search(query, signal), { maxWaiting: MAX_WAITING_SEARCHES, signal })
  }

  async #search(query: ChunkQuery, signal: AbortSignal): Promise<readonly ChunkCandidate[]> {
    const collection = await this.#collection(query.collectionId, signal)
    if (!collection) return []
    if (query.vector) checkVector(query.vector, collection.dimensions, 'The vector of the query')
    if (query.anchor) checkVector(query.anchor, collection.dimensions, 'The anchor of the query')
    return search(this.#client, this.#names, collection.dimensions, query, signal)
  }

  async get(collectionId: string, chunkIds: readonly string[]): Promise<readonly StoredChunk[]> {
    atMost(chunkIds.length, MAX_CHUNKS_PER_GET, 'chunk ids')
    if (chunkIds.length === 0) return []
    const excludes = ['vector', 'small_vector', 'term_counts', 'attributes', 'context', 'token_states']
    const found = await this.#sources<ChunkSource>(collectionId, chunkIds, { excludes })
    return chunkIds.flatMap((chunkId) => {
      const source = found.get(chunkId)
      return source ? [toStoredChunk(chunkId, source)] : []
    })
  }

  async tokenEmbeddings(collectionId: string, chunkIds: readonly string[]): Promise<ReadonlyMap<string, TokenEmbeddings>> {
    atMost(chunkIds.length, MAX_TOKEN_EMBEDDINGS_PER_GET, 'chunk ids')
    if (chunkIds.length === 0) return new Map()
    const found = await this.#sources<Pick<EntrySource, 'token_states'>>(collectionId, chunkIds, ['token_states'])
    return new Map(
      [...found].flatMap(([chunkId, { token_states: base64 }]) =>
        base64 === undefined ? [] : [[chunkId, Int8Array.from(Buffer.from(base64, 'base64'))] as const],
      ),
    )
  }

  /** Reads fields of chunks' entries, by chunk ID. */
  async #sources<Source>(
    collectionId: string,
    chunkIds: readonly string[],
    parts: estypes.SearchSourceConfig,
  ): Promise<ReadonlyMap<string, Source>> {
    const ids = { values: chunkIds.map((chunkId) => entryId(collectionId, chunkId)) }
    const request = {
      index: this.#names.allChunks,
      routing: collectionId,
      ignore_unavailable: true,
      allow_partial_search_results: false,
      query: { bool: { filter: [...only({ collectionId }), { ids }] } },
      // While a rebuild copies, an entry may exist twice.
      size: 2 * chunkIds.length,
      _source: parts,
    }
    const { hits } = await this.#reads.run(collectionId, () => awaitResponse(this.#client.search<Source>(request)))
    return new Map(hits.hits.map(({ _id, _source }) => [readChunkId(collectionId, _id!), _source!]))
  }

  async rebuild(after: string | null, toTerms: ToTerms, signal: AbortSignal): Promise<RebuildStep> {
    return rebuildStep({ client: this.#client, names: this.#names, size: this.#size }, after, toTerms, signal)
  }

  /** Does nothing: Elasticsearch maintains its own files, and a missing index is created at the next start. */
  async replaceUnreadable(): Promise<boolean> {
    return false
  }

  /** Returns at once if nothing is deleted. The server continues a long run after the caller's time limit. */
  async expunge(signal: AbortSignal): Promise<void> {
    const request = { index: this.#names.allChunks, only_expunge_deletes: true, ignore_unavailable: true }
    const options = { requestTimeout: EXPUNGE_TIMEOUT_MS, maxRetries: 0, signal, ignore: [404] }
    await awaitResponse(this.#client.indices.forcemerge(request, options), signal)
  }

  async ping(signal: AbortSignal): Promise<void> {
    const targets = [{ index: this.#names.collections }, { index: this.#names.allChunks, ignore_unavailable: true }]
    const nothing = { size: 0, track_total_hits: false }
    const searches = targets.map((target) => [target, nothing] as const)
    await searchAll(this.#client, searches, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close()
  }

  /** Reads the current state instead of that of the last refresh. */
  async #collection(collectionId: string, signal?: AbortSignal): Promise<CollectionSource | undefined> {
    try {
      const found = await this.#client.get<CollectionSource>({ index: this.#names.collections, id: collectionId }, signal ? { signal } : {})
      return found._source
    } catch (error) {
      const isAbsent = readStatus(error) === 404 && (error as { body?: { found?: unknown } }).body?.found === false
      return isAbsent ? undefined : awaitResponse(Promise.reject(error), signal)
    }
  }

  /** Counts searchable chunks by distinct values in ascending order. */
  async #group(
    { filter, routing }: { readonly filter: estypes.QueryDslQueryContainer[]; readonly routing?: string },
    fields: readonly string[],
    limit: number,
  ): Promise<readonly estypes.AggregationsCompositeBucket[]> {
    const index = await this.#searched()
    if (index.length === 0) return []
    const sources = fields.map((field) => ({ [field]: { terms: { field } } }))
    const { aggregations } = await awaitResponse(
      this.#client.search({
        index,
        ...(routing !== undefined && { routing }),
        allow_partial_search_results: false,
        size: 0,
        track_total_hits: false,
        query: { bool: { filter } },
        aggs: { groups: { composite: { size: limit, sources }, aggs: { last: { max: { field: 'ordinal' } } } } },
      }),
    )
    return (aggregations!.groups as estypes.AggregationsCompositeAggregate).buckets as estypes.AggregationsCompositeBucket[]
  }

  /** The aliases that searches use, for all numbers of dimensions. */
  async #searched(): Promise<string[]> {
    const found = await awaitResponse(this.#client.indices.getAlias({ name: `${this.#names.allChunks}-*` }, { ignore: [404] }))
    const aliases = Object.values(found).flatMap(({ aliases }) => Object.keys(aliases ?? {}))
    return [...new Set(aliases)].filter((alias) => this.#names.isChunks(alias))
  }

  async #refresh(): Promise<void> {
    await awaitResponse(this.#client.indices.refresh({ index: this.#names.allChunks, ignore_unavailable: true }))
  }

  async #deleteChunks(collectionId: string, filter: readonly estypes.QueryDslQueryContainer[]): Promise<void> {
    for (let pass = 0; pass < MAX_DELETE_PASSES; pass++) {
      // The deletion finds only visible chunks, and a write without a response may not be visible.
      await this.#refresh()
      const {
        deleted = 0,
        version_conflicts: conflicts = 0,
        failures = [],
      } = await awaitResponse(
        this.#client.deleteByQuery(
          {
            index: this.#names.allChunks,
            routing: collectionId,
            ignore_unavailable: true,
            conflicts: 'proceed',
            refresh: true,
            query: { bool: { filter: [...only({ collectionId }), ...filter] } },
          },
          { requestTimeout: DELETE_TIMEOUT_MS },
        ),
      )
      if (failures.length) throw toFailure(failures[0]!.status, `a chunk was not deleted, status ${failures[0]!.status}`)
      // A rebuild may have copied a chunk between the search and its deletion. The next search finds the copy.
      if (deleted === 0 && conflicts === 0) return
    }
    throw toFailure(503, `chunks were written while they were deleted, ${MAX_DELETE_PASSES} times`)
  }
}

function only({ collectionId, documentId }: { readonly collectionId: string; readonly documentId?: string }) {
  return [{ term: { collection_id: collectionId } }, ...(documentId === undefined ? [] : [{ term: { document_id: documentId } }])]
}

function checkVector(vector: Float32Array, dimensions: number, whose: string): void {
  const refuse = (problem: string) => new KisError('invalid_request', `${whose} ${problem}.`)
  if (vector.length !== dimensions) throw refuse(`has ${vector.length} components; the collection's have ${dimensions}`)
  if (!vector.every(Number.isFinite)) throw refuse('has a component that is not a finite number')
  if (vector.every((x) => x === 0)) throw refuse('is zero, so it has no direction')
}

function atMost(count: number, max: number, what: string): void {
  if (count > max) throw new KisError('array_above_max_length', `At most ${max} ${what} at once, not ${count}.`)
}
