import { indexNameOf } from '../../domain/index-name.ts'
import { type CollectionRecord, type DocumentRecord, findableGeneration, generationNumber } from '../../domain/records.ts'
import type { SearchFilter } from '../../domain/search/search-filter.ts'
import type { ChunkCandidate, ChunkQuery } from '../../ports/chunk-index.ts'
import type { Deps } from '../deps.ts'

/**
 * The number of documents and versions that a search excludes because they are not to be found. Their chunks can fill
 * the list of candidates and leave no room for others. Usually two documents of an organization are in process.
 */
const MAX_PASSED = 8
/** The number of times that a search begins again because a new version of a document came in between. */
export const MAX_OVERTAKEN = 2

interface Live {
  readonly candidates: readonly ChunkCandidate[]
  /** The documents of the candidates, by id. */
  readonly documents: ReadonlyMap<string, DocumentRecord>
}

/**
 * Finds candidates in one collection, whose documents are ready or ingested for the first time. The index may hold
 * chunks of documents that are deleted, replaced or repaired, so each candidate is checked against the primary store.
 * Looks again without documents that are not to be found if fewer than `enough` candidates are left, and without
 * versions in process. `candidates`: how many to take from each of the rankings.
 */
export async function findLive(
  deps: Pick<Deps, 'store' | 'index'>,
  collection: CollectionRecord,
  query: Pick<ChunkQuery, 'vector' | 'anchor' | 'words' | 'grams' | 'filter'>,
  { enough, candidates }: { readonly enough: number; readonly candidates: number },
  signal: AbortSignal,
): Promise<Live> {
  const search = async (filter: SearchFilter | null) => {
    const found = await deps.index.search({ ...query, collectionId: indexNameOf(collection), candidates, filter }, signal)
    const ids = [...new Set(found.map(({ documentId }) => documentId))]
    const documents = await findableDocuments(deps, collection, ids)
    const ageOf = ({ documentId, generation }: ChunkCandidate) => {
      const document = documents.get(documentId)
      const live = document && findableGeneration(document)
      return live ? generationNumber(generation) - generationNumber(live) : Number.NaN
    }
    return {
      documents,
      candidates: found.filter((candidate) => ageOf(candidate) === 0),
      hidden: ids.filter((id) => !documents.has(id)),
      // Versions that are being ingested. Their chunks take the places of the live ones.
      pending: distinct(found.filter((candidate) => ageOf(candidate) > 0)),
      // A new version has come since the index was searched, or has left chunks of the one before.
      isOvertaken: found.some((candidate) => ageOf(candidate) < 0),
    }
  }
  const searchBeyondPassed = async () => {
    let found = await search(query.filter)
    const passed: SearchFilter[] = []
    while (passed.length < MAX_PASSED && ((found.candidates.length < enough && found.hidden.length > 0) || found.pending.length > 0)) {
      const others = [...found.pending.map(ofVersion), ...found.hidden.map(ofDocument)]
      passed.push(...others.slice(0, MAX_PASSED - passed.length))
      found = await search(without(passed, query.filter))
    }
    return found
  }
  let found = await searchBeyondPassed()
  // Otherwise a document could have neither its old chunks nor its new ones among the candidates.
  for (let again = 0; found.isOvertaken && again < MAX_OVERTAKEN; again++) found = await searchBeyondPassed()
  return found
}

function without(passed: readonly SearchFilter[], filter: SearchFilter | null): SearchFilter {
  const others: SearchFilter = { op: 'not', filter: { op: 'or', filters: passed } }
  return filter ? { op: 'and', filters: [filter, others] } : others
}

function ofDocument(documentId: string): SearchFilter {
  return { op: 'eq', field: 'document_id', value: documentId }
}

/** `generation` is an attribute of versions that are ingested while an earlier one is live. */
function ofVersion({ documentId, generation }: ChunkCandidate): SearchFilter {
  return { op: 'and', filters: [ofDocument(documentId), { op: 'eq', field: 'generation', value: generation }] }
}

function distinct(candidates: readonly ChunkCandidate[]): readonly ChunkCandidate[] {
  return [...new Map(candidates.map((candidate) => [`${candidate.documentId} ${candidate.generation}`, candidate])).values()]
}

async function findableDocuments(
  { store }: Pick<Deps, 'store'>,
  { _id: collectionId, organizationId }: CollectionRecord,
  ids: readonly string[],
): Promise<ReadonlyMap<string, DocumentRecord>> {
  if (ids.length === 0) return new Map()
  const filter = { _id: { $in: ids }, collectionId, organizationId, listed: true, status: { $in: ['ready', 'processing'] } }
  const documents = await store.documents.find(filter, { limit: ids.length })
  return new Map(documents.filter((document) => findableGeneration(document) !== null).map((document) => [document._id, document]))
}
