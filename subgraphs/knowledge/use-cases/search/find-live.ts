import type { CollectionRecord, DocumentRecord } from '../../domain/records.ts'
import type { SearchFilter } from '../../domain/search/search-filter.ts'
import type { ChunkCandidate, ChunkQuery } from '../../ports/chunk-index.ts'
import type { Deps } from '../deps.ts'

/**
 * The number of candidates from each of the rankings. It is large enough for the rankings to share candidates, and
 * small enough to score each candidate.
 */
const CANDIDATES = 100
/**
 * The number of unready documents that a search excludes. The chunks of such a document can fill the list of candidates
 * and leave no room for ready documents. Usually two documents of an organization are in process.
 */
const MAX_PASSED = 8

export interface Live {
  readonly candidates: readonly ChunkCandidate[]
  /** The documents of the candidates, by id. */
  readonly documents: ReadonlyMap<string, DocumentRecord>
}

/**
 * Finds candidates in one collection, whose documents are all ready. The index may hold chunks of documents that are
 * deleted, replaced or not ready, so each candidate is checked against the primary store. Looks again without the
 * documents in process if fewer than `enough` are left.
 */
export async function findLive(
  deps: Pick<Deps, 'store' | 'index'>,
  collection: CollectionRecord,
  asked: Pick<ChunkQuery, 'vector' | 'words' | 'grams' | 'filter'>,
  enough: number,
  signal: AbortSignal,
): Promise<Live> {
  const look = async (filter: SearchFilter | null) => {
    const found = await deps.index.search({ ...asked, collectionId: collection._id, candidates: CANDIDATES, filter }, signal)
    const ids = [...new Set(found.map(({ documentId }) => documentId))]
    const documents = await readyDocuments(deps, collection, ids)
    const candidates = found.filter(({ documentId, generation }) => documents.get(documentId)?.liveGeneration === generation)
    return { documents, candidates, unready: ids.filter((id) => !documents.has(id)) }
  }
  let found = await look(asked.filter)
  const passed: string[] = []
  while (found.candidates.length < enough && found.unready.length > 0 && passed.length < MAX_PASSED) {
    passed.push(...found.unready.slice(0, MAX_PASSED - passed.length))
    found = await look(without(passed, asked.filter))
  }
  return found
}

function without(documentIds: readonly string[], filter: SearchFilter | null): SearchFilter {
  const others: SearchFilter = { op: 'not', filter: { op: 'in', field: 'document_id', values: documentIds } }
  return filter ? { op: 'and', filters: [filter, others] } : others
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
