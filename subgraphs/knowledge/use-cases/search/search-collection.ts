import { ModelNotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { indexNameOf, indexTagOf } from '../../domain/index-name.ts'
import { buildChunkId, type CollectionRecord, type DocumentRecord } from '../../domain/records.ts'
import { countFacets, type Facet } from '../../domain/search/facets.ts'
import type { RankedChunk } from '../../domain/search/fuse.ts'
import { findHighlights, type TextRange } from '../../domain/search/highlights.ts'
import { createAim } from '../../domain/search/query-vectors.ts'
import { findRequiredPhrases } from '../../domain/search/quoted-phrases.ts'
import { detectLanguage } from '../../domain/text/language.ts'
import type { StoredChunk } from '../../ports/chunk-index.ts'
import type { CallContext } from '../../ports/inference.ts'
import type { Deps } from '../deps.ts'
import { getCollection } from '../documents/collections.ts'
import { compareTokens } from './compare-tokens.ts'
import { findLive, MAX_OVERTAKEN } from './find-live.ts'
import { rankCandidates } from './rank-candidates.ts'
import { chooseReranker, RERANKED, type RerankOutcome, rerankChunks } from './rerank-chunks.ts'
import { type RewriteOutcome, rewriteSearch } from './rewrite-search.ts'
import { checkSearch, readLetters, type SearchInput, type SearchRequest, termsOf } from './search-request.ts'

/**
 * The number of candidates from each of the rankings. It is large enough for the rankings to share candidates, and
 * small enough to score each candidate.
 */
const CANDIDATES = 100
/** The same for a query with a quoted phrase, which only one passage among many with its words may have. */
const CANDIDATES_FOR_PHRASES = 300
/** Chunks that are ranked when hits are grouped, so that a document with many of them leaves room for others. */
const GROUPED = 200
/** Most records of one read, as the ports of the store and of the chunk index allow. */
const BATCH = 1_000

export interface SearchHit {
  readonly chunk: StoredChunk
  readonly document: DocumentRecord
  readonly ranked: RankedChunk
  /** What of the chunk's text has the query's words. */
  readonly highlights: readonly TextRange[]
  /** Neighbours in the document, in its order. */
  readonly before: readonly StoredChunk[]
  readonly after: readonly StoredChunk[]
}

/** The hits of one document. */
interface HitGroup {
  readonly document: DocumentRecord
  readonly hits: readonly SearchHit[]
}

interface SearchResult {
  readonly hits: readonly SearchHit[]
  /** By document, best first; null unless it was asked for. */
  readonly groups: readonly HitGroup[] | null
  readonly facets: readonly Facet[]
  /** Null: no reranker was asked. */
  readonly rerank: RerankOutcome | null
  /** Null: the query had no conversation before it. */
  readonly rewrite: RewriteOutcome | null
  /** The charge for rewriting and embedding the query and for reranking, in nano-USD; 0 for a plain lexical search. */
  readonly cost: bigint
}

type SearchDeps = Pick<Deps, 'store' | 'index' | 'inference'>
type EmbeddingDeps = Pick<Deps, 'store' | 'index'> & { readonly inference: ReturnType<typeof embedOnce> }
type SearchContext = LinkContext & Pick<CallContext, 'runHoldId' | 'step'>

/** What one search found, before it is cut to the answer. */
interface Found {
  /** Best first. */
  readonly ranked: readonly RankedChunk[]
  /** All that were considered. */
  readonly documents: ReadonlyMap<string, DocumentRecord>
}

/**
 * Returns the most relevant chunks of collections, best first.
 * @throws {KisError} as `checkSearch` does, if the request is wrong.
 * @throws {NotFound} if the organization has no such collection.
 * @throws {KisError} `model_not_found` if the key may not use a collection's model.
 * @throws {KisError} `insufficient_quota` if the wallet cannot pay for the embedding.
 * @throws {KisError} `service_unavailable` if a store or inference cannot be reached.
 */
export async function searchCollection(deps: SearchDeps, context: SearchContext, input: SearchInput): Promise<SearchResult> {
  const principal = requireScope(context.caller, 'knowledge:read')
  const checked = checkSearch(input)
  const param = input.collectionIds == null ? null : 'input.collectionIds'
  let collections = await Promise.all(checked.collectionIds.map((id) => getCollection(deps, principal.organizationId, id, param)))
  for (const collection of collections) requireModel(principal, collection)
  const caller: CallContext = { ...context, caller: principal }
  const rewritten = await rewriteSearch(deps, caller, checked)
  const request = readLetters(rewritten.request)

  const reranker = chooseReranker(request, collections)
  const pool = request.hitsPerDocument !== null ? GROUPED : reranker === null ? request.limit : Math.max(request.limit, RERANKED)
  const embedding = { ...deps, inference: embedOnce(deps.inference) }
  const findWithChunks = async () => {
    const found = await findRanked(embedding, caller, request, collections, pool)
    return { found, chunks: await readChunks(deps, collections, found, found.ranked) }
  }
  // Another embedding model has come since the collection was read: the index that was searched may be gone.
  const hasOtherIndex = async () => {
    const now = await Promise.all(collections.map(async (one) => (await deps.store.collections.findOne({ _id: one._id })) ?? one))
    const before = collections
    collections = now
    for (const collection of now) requireModel(principal, collection)
    return now.some((collection, i) => indexNameOf(collection) !== indexNameOf(before[i]!))
  }
  let { found, chunks } = await findWithChunks()
  // A new version of a document has come since the index was searched: its old chunks are gone.
  const hasLost = () => found.ranked.some(({ chunkId }) => !chunks.has(chunkId))
  for (let again = 0; again < MAX_OVERTAKEN && ((await hasOtherIndex()) || hasLost()); again++) {
    ;({ found, chunks } = await findWithChunks())
  }
  const reranked = reranker === null ? null : await rerankChunks(deps, caller, request, reranker, found.ranked, chunks)

  const ranked = (reranked?.ranked ?? found.ranked).filter(
    ({ chunkId, score }) => chunks.has(chunkId) && (request.minScore === null || score >= request.minScore),
  )
  const groups = request.hitsPerDocument === null ? [ranked.slice(0, request.limit)] : groupByDocument(ranked, request)
  const neighbours = await readNeighbours(deps, collections, found, groups.flat(), chunks, request.expand)
  const stems = new Set(termsOf(request).words)
  const toHit = (rank: RankedChunk): SearchHit => {
    const chunk = chunks.get(rank.chunkId)!
    return {
      chunk,
      document: found.documents.get(chunk.documentId)!,
      ranked: rank,
      highlights: findHighlights(chunk.text, stems),
      ...besides(chunk, neighbours, request.expand),
    }
  }
  const hits = groups.map((group) => group.map(toHit))
  return {
    hits: hits.flat(),
    groups: request.hitsPerDocument === null ? null : hits.map((group) => ({ document: group[0]!.document, hits: group })),
    facets: await readFacets(deps, request, found),
    rerank: reranked?.outcome ?? null,
    rewrite: rewritten.outcome,
    cost: rewritten.cost + (await embedding.inference.sumCost()) + (reranked?.cost ?? 0n),
  }
}

/** Embeds the query once for each model, so that it is paid once, however often the search begins again. */
function embedOnce(inference: Deps['inference']) {
  const embedded = new Map<string, ReturnType<Deps['inference']['embedQuery']>>()
  return {
    embeddingModel: (modelId: string, context: CallContext) => inference.embeddingModel(modelId, context),
    embedQuery(modelId: string, text: string, context: CallContext) {
      const embedding = embedded.get(modelId) ?? inference.embedQuery(modelId, text, context)
      embedded.set(modelId, embedding)
      return embedding
    },
    sumCost: async () => (await Promise.all(embedded.values())).reduce((sum, { cost }) => sum + cost, 0n),
  }
}

/**
 * Ranks the chunks of all collections. Scores of one embedding model can be compared, so its collections are ranked as
 * one. Those of different models cannot: their chunks alternate by rank.
 */
async function findRanked(
  deps: EmbeddingDeps,
  context: CallContext,
  request: SearchRequest,
  collections: readonly CollectionRecord[],
  pool: number,
): Promise<Found> {
  const byModel = [...Map.groupBy(collections, ({ embeddingModel }) => (request.mode === 'lexical' ? '' : embeddingModel)).values()]
  const found = await Promise.all(
    byModel.map((group, index) => {
      // A step of a run is paid once, so each model needs a path of its own.
      const path = [...(index > 0 ? [index] : []), indexTagOf(indexNameOf(group[0]!))].filter(Boolean)
      const step = context.step && path.length > 0 ? { step: [context.step, ...path].join('/') } : {}
      return findOfModel(deps, { ...context, ...step }, request, group, pool)
    }),
  )
  const placed = found.flatMap(({ ranked }) => ranked.map((rank, place) => ({ rank, place })))
  placed.sort((a, b) => a.place - b.place || b.rank.score - a.rank.score || (a.rank.chunkId < b.rank.chunkId ? -1 : 1))
  return {
    ranked: found.length === 1 ? found[0]!.ranked : placed.slice(0, pool).map(({ rank }) => rank),
    documents: new Map(found.flatMap(({ documents }) => [...documents])),
  }
}

/** Ranks the chunks of collections with the same embedding model. The query is embedded once. */
async function findOfModel(
  deps: EmbeddingDeps,
  context: CallContext,
  { text, query, typed, mode, filter, limit, lexicalWeight }: SearchRequest,
  collections: readonly CollectionRecord[],
  pool: number,
): Promise<Found> {
  const { embeddingModel } = collections[0]!
  const [model, embedded] =
    mode === 'lexical'
      ? [null, null]
      : await Promise.all([
          deps.inference.embeddingModel(embeddingModel, context),
          deps.inference.embedQuery(embeddingModel, text, context),
        ])
  const language = detectLanguage(query)
  const aim = embedded && createAim(embedded.vector, language, model?.calibration ?? null)
  const terms = mode === 'vector' ? { words: [], grams: [] } : termsOf({ query, typed })
  const indexQuery = { vector: aim?.vector ?? null, anchor: aim?.anchor ?? null, ...terms, filter }
  const hasPhrases = findRequiredPhrases(query).length > 0
  const live = await Promise.all(
    collections.map((collection) =>
      findLive(
        deps,
        collection,
        indexQuery,
        { enough: limit, candidates: hasPhrases ? CANDIDATES_FOR_PHRASES : CANDIDATES },
        context.signal,
      ),
    ),
  )
  const candidates = live.flatMap((each) => each.candidates)
  const indexNamesById = new Map(live.flatMap((each, i) => each.candidates.map(({ chunkId }) => [chunkId, indexNameOf(collections[i]!)])))
  const ofEach = <T>(chunkIds: readonly string[], read: (name: string, ids: readonly string[]) => Promise<Iterable<T>>) => {
    const byIndex = [...Map.groupBy(chunkIds, (id) => indexNamesById.get(id)!)]
    return Promise.all(byIndex.map(([name, ids]) => read(name, ids))).then((read) => read.flatMap((each) => [...each]))
  }
  const tokenCloseness = await compareTokens(
    async (chunkIds) => new Map(await ofEach(chunkIds, (name, ids) => deps.index.tokenEmbeddings(name, ids))),
    { tokenEmbeddings: embedded?.tokenStates ?? null, language, mode, aim },
    candidates,
  )
  const ranking = { query, language, mode, limit: pool, aim, spread: model?.cosineSpread ?? null, lexicalWeight, tokenCloseness }
  return {
    ranked: await rankCandidates((chunkIds) => ofEach(chunkIds, (name, ids) => deps.index.get(name, ids)), ranking, candidates),
    documents: new Map(live.flatMap(({ documents }) => [...documents])),
  }
}

/** Requires the model for every mode, because a lexical search reveals the collection's content too. */
function requireModel({ modelAllowlist }: Principal, { embeddingModel }: CollectionRecord): void {
  if (modelAllowlist !== null && !modelAllowlist.includes(embeddingModel)) throw new ModelNotFound(embeddingModel, 'collection')
}

/** The best chunks of the best documents, in the order of each document's best chunk. */
function groupByDocument(ranked: readonly RankedChunk[], { limit, hitsPerDocument }: SearchRequest): readonly (readonly RankedChunk[])[] {
  const groups = [...Map.groupBy(ranked, ({ documentId }) => documentId).values()]
  return groups.slice(0, limit).map((group) => group.slice(0, hitsPerDocument!))
}

/** Reads chunks of documents that the search has found, by id. */
async function readChunks(
  { index }: Pick<Deps, 'index'>,
  collections: readonly CollectionRecord[],
  { documents }: Pick<Found, 'documents'>,
  wanted: readonly { readonly chunkId: string; readonly documentId: string }[],
): Promise<ReadonlyMap<string, StoredChunk>> {
  const names = new Map(collections.map((collection) => [collection._id, indexNameOf(collection)]))
  const byIndex = Map.groupBy(wanted, ({ documentId }) => names.get(documents.get(documentId)!.collectionId)!)
  const read = await Promise.all(
    [...byIndex].flatMap(([name, chunks]) => inBatches(chunks.map(({ chunkId }) => chunkId)).map((ids) => index.get(name, ids))),
  )
  return new Map(read.flat().map((chunk) => [chunk.chunkId, chunk]))
}

/** Reads the chunks around the hits, with the hits' own. */
async function readNeighbours(
  deps: Pick<Deps, 'index'>,
  collections: readonly CollectionRecord[],
  found: Pick<Found, 'documents'>,
  hits: readonly RankedChunk[],
  chunks: ReadonlyMap<string, StoredChunk>,
  expand: number,
): Promise<ReadonlyMap<string, StoredChunk>> {
  if (expand === 0) return chunks
  const wanted = new Map<string, { readonly chunkId: string; readonly documentId: string }>()
  for (const { chunkId, documentId, generation } of hits) {
    const { ordinal } = chunks.get(chunkId)!
    for (let neighbour = Math.max(0, ordinal - expand); neighbour <= ordinal + expand; neighbour++) {
      const id = buildChunkId(documentId, generation, neighbour)
      if (!chunks.has(id)) wanted.set(id, { chunkId: id, documentId })
    }
  }
  return new Map([...chunks, ...(await readChunks(deps, collections, found, [...wanted.values()]))])
}

function besides({ documentId, generation, ordinal }: StoredChunk, chunks: ReadonlyMap<string, StoredChunk>, expand: number) {
  const at = (neighbour: number) => chunks.get(buildChunkId(documentId, generation, neighbour)) ?? []
  const steps = Array.from({ length: expand }, (_, step) => step + 1)
  return { before: steps.toReversed().flatMap((step) => at(ordinal - step)), after: steps.flatMap((step) => at(ordinal + step)) }
}

async function readFacets({ store }: Pick<Deps, 'store'>, { facets }: SearchRequest, { documents }: Found): Promise<readonly Facet[]> {
  const all = [...documents.values()]
  const ids = facets.includes('media_type') ? [...new Set(all.map(({ fileId }) => fileId))] : []
  const files = await Promise.all(inBatches(ids).map((some) => store.files.find({ _id: { $in: some } }, { limit: some.length })))
  return countFacets(facets, all, new Map(files.flat().map(({ _id, mediaType }) => [_id, mediaType])))
}

function inBatches<T>(items: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / BATCH) }, (_, batch) => items.slice(batch * BATCH, (batch + 1) * BATCH))
}
