import { KisError, ModelNotFound } from '../../../common/errors.ts'
import { type Principal, requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import type { CollectionRecord, DocumentRecord } from '../../domain/records.ts'
import { takeAim } from '../../domain/search/aim.ts'
import type { RankedChunk, SearchMode } from '../../domain/search/fuse.ts'
import { parseSearchFilter } from '../../domain/search/parse-search-filter.ts'
import { findRequiredPhrases } from '../../domain/search/quoted-phrases.ts'
import type { SearchFilter } from '../../domain/search/search-filter.ts'
import { detectLanguage } from '../../domain/text/language.ts'
import { normaliseText } from '../../domain/text/normalise-text.ts'
import { normaliseForEmbedding, queryTerms } from '../../domain/text/text-analysis.ts'
import type { StoredChunk } from '../../ports/chunk-index.ts'
import type { CallContext } from '../../ports/inference.ts'
import type { Deps } from '../deps.ts'
import { getCollection } from '../documents/collections.ts'
import { rankCandidates } from './rank-candidates.ts'

/**
 * The number of candidates from each of the two rankings. It is large enough for both rankings to share candidates, and
 * small enough to score each candidate.
 */
const CANDIDATES = 100
/** The same for a query with a quoted phrase, which only one passage among many with its words may have. */
const CANDIDATES_FOR_PHRASES = 300
/**
 * The number of unready documents that a search excludes. The chunks of such a document can fill the list of candidates
 * and leave no room for ready documents. Usually two documents of an organization are in process.
 */
const MAX_PASSED = 8
const MAX_QUERY = 8_192
const MAX_LIMIT = 50

export interface SearchHit {
  readonly chunk: StoredChunk
  readonly document: DocumentRecord
  readonly ranked: RankedChunk
}

export interface SearchAnswer {
  readonly hits: readonly SearchHit[]
  /** The charge for the embedding of the query, in nano-USD; 0 for a lexical search. */
  readonly cost: bigint
}

/**
 * Returns the most relevant chunks of a collection, best first. The index may hold chunks of documents that are
 * deleted, replaced or not ready, so each candidate is checked against the primary store before it is ranked.
 * @throws {KisError} `invalid_request` if the query is empty.
 * @throws {KisError} as `parseSearchFilter` does, if the filter is not valid.
 * @throws {KisError} `string_above_max_length`, `integer_below_min_value` or `integer_above_max_value` if the query is
 * too long or the limit is out of range.
 * @throws {NotFound} if the organization has no such collection.
 * @throws {KisError} `model_not_found` if the key may not use the collection's model.
 * @throws {KisError} `insufficient_quota` if the wallet cannot pay for the embedding.
 * @throws {KisError} `service_unavailable` if a store or inference cannot be reached.
 */
export async function searchCollection(
  deps: Pick<Deps, 'store' | 'index' | 'inference'>,
  context: LinkContext & Pick<CallContext, 'runHoldId' | 'step'>,
  input: {
    readonly collectionId: string
    readonly query: string
    readonly limit: number
    readonly mode: SearchMode
    readonly filter: unknown
  },
): Promise<SearchAnswer> {
  const { index, inference } = deps
  const principal = requireScope(context.caller, 'knowledge:read')
  const { query, limit, mode } = input
  // As documents are when they are read.
  const spelled = normaliseText(query)
  const text = normaliseForEmbedding(spelled)
  if (text.trim() === '') throw new KisError('invalid_request', 'The query must not be empty.', { param: 'input.query' })
  if (query.length > MAX_QUERY)
    throw new KisError('string_above_max_length', `A query has at most ${MAX_QUERY} characters.`, { param: 'input.query' })
  if (limit < 1) throw new KisError('integer_below_min_value', 'The limit is at least 1.', { param: 'input.limit' })
  if (limit > MAX_LIMIT) throw new KisError('integer_above_max_value', `The limit is at most ${MAX_LIMIT}.`, { param: 'input.limit' })
  const filter = parseSearchFilter(input.filter ?? null)
  const collection = await getCollection(deps, principal.organizationId, input.collectionId)
  requireModel(principal, collection)

  const caller = { ...context, caller: principal }
  const [model, embedded] =
    mode === 'lexical'
      ? [null, null]
      : await Promise.all([
          inference.embeddingModel(collection.embeddingModel, caller),
          inference.embedQuery(collection.embeddingModel, text, caller),
        ])
  const { vector, cost } = embedded ?? { vector: null, cost: 0n }
  const language = detectLanguage(spelled)
  const aim = vector && takeAim(vector, language, model?.calibration ?? null)
  const terms = mode === 'vector' ? { words: [], grams: [] } : queryTerms(spelled)
  const wanted = findRequiredPhrases(spelled).length > 0 ? CANDIDATES_FOR_PHRASES : CANDIDATES
  const findLive = async (filter: SearchFilter | null) => {
    const asked = {
      collectionId: collection._id,
      vector: aim?.vector ?? null,
      anchor: aim?.anchor ?? null,
      ...terms,
      candidates: wanted,
      filter,
    }
    const candidates = await index.search(asked, context.signal)
    const ids = [...new Set(candidates.map(({ documentId }) => documentId))]
    const documents = await readyDocuments(deps, collection, ids)
    const live = candidates.filter(({ documentId, generation }) => documents.get(documentId)?.liveGeneration === generation)
    return { documents, live, unready: ids.filter((id) => !documents.has(id)) }
  }
  let found = await findLive(filter)
  // The chunks of a document in process can take every place in the list of candidates.
  const passed: string[] = []
  while (found.live.length < limit && found.unready.length > 0 && passed.length < MAX_PASSED) {
    passed.push(...found.unready.slice(0, MAX_PASSED - passed.length))
    found = await findLive(without(passed, filter))
  }
  const { documents, live } = found
  const ranking = { collectionId: collection._id, query: spelled, language, mode, limit, aim, spread: model?.cosineSpread ?? null }
  const ranked = await rankCandidates(deps, ranking, live)
  const chunks = new Map(
    (
      await index.get(
        collection._id,
        ranked.map(({ chunkId }) => chunkId),
      )
    ).map((chunk) => [chunk.chunkId, chunk]),
  )
  const hits = ranked.flatMap((rank) => {
    const chunk = chunks.get(rank.chunkId)
    return chunk ? [{ chunk, document: documents.get(chunk.documentId)!, ranked: rank }] : []
  })
  return { hits, cost }
}

function without(documentIds: readonly string[], filter: SearchFilter | null): SearchFilter {
  const others: SearchFilter = { op: 'not', filter: { op: 'in', field: 'document_id', values: documentIds } }
  return filter ? { op: 'and', filters: [filter, others] } : others
}

/** Requires the model for every mode, because a lexical search reveals the collection's content too. */
function requireModel({ modelAllowlist }: Principal, { embeddingModel }: CollectionRecord): void {
  if (modelAllowlist !== null && !modelAllowlist.includes(embeddingModel)) throw new ModelNotFound(embeddingModel, 'collection')
}

async function readyDocuments(
  { store }: Pick<Deps, 'store'>,
  { _id: collectionId, organizationId }: CollectionRecord,
  ids: readonly string[],
): Promise<ReadonlyMap<string, DocumentRecord>> {
  if (ids.length === 0) return new Map()
  const filter = { _id: { $in: ids }, collectionId, organizationId, listed: true, status: 'ready' }
  const documents = await store.documents.find(filter, { limit: ids.length })
  return new Map(documents.map((document) => [document._id, document]))
}
