import type { Client, estypes } from '@elastic/elasticsearch'
import type { ChunkCandidate, ChunkQuery } from '../../ports/chunk-index.ts'
import { countTerms, toCoverage } from './bm25.ts'
import { awaitResponse, toFailure } from './client.ts'
import { decimals } from './entries.ts'
import { filterQuery } from './filter.ts'
import { type IndexNames, readChunkId } from './indices.ts'
import { KINDS, termMark } from './term-counts.ts'

/**
 * Vectors that a search of the graph compares in each segment, for each candidate. Chunks that exist more than once split
 * the graph into islands, which a search with fewer does not leave.
 */
const COMPARED_PER_CANDIDATE = 10
/** The server's own limit. */
const MAX_COMPARED = 10_000
/** The graph orders by int8 in Lucene's own scale. This many times the candidates are then ordered by their floats. */
const OVERSAMPLE = 2
/** The longest query has three times as many 3-grams. Those beyond find nothing, but score. */
const MAX_FINDING_TERMS = 512
/**
 * The server gives up a search after this long, even if nobody waits for it anymore. Without it a filter that compares
 * many values would go on.
 */
const TIMEOUT = '5s'
const FIELDS = ['document_id', 'generation', 'language', 'term_counts'] as const

type Body = estypes.SearchSearchRequestBody
type SearchResponse = estypes.MsearchMultiSearchItem<unknown>
type Cosines = ReadonlyMap<string, number>

/**
 * One round trip finds, by the server's BM25 and by its vectors, and counts the query's terms in the collection. The
 * server's scores of words only choose what is found: they also count deleted chunks, and other collections of the shard.
 * A second round trip compares vectors with what words have found.
 */
export async function search(
  client: Client,
  names: IndexNames,
  dimensions: number,
  query: ChunkQuery,
  signal: AbortSignal,
): Promise<readonly ChunkCandidate[]> {
  const { collectionId, vector, anchor, candidates } = query
  const header = { index: names.chunks(dimensions), routing: collectionId }
  const run = (searches: readonly Body[]) =>
    searchAll(
      client,
      searches.map((body) => [header, { timeout: TIMEOUT, track_total_hits: false, _source: false, ...body }] as const),
      signal,
    )
  const mark = termMark(collectionId)
  const filter = [{ term: { collection_id: collectionId } }, ...(query.filter ? [filterQuery(query.filter)] : [])]
  const terms = { words: [...new Set(query.words)], grams: [...new Set(query.grams)] }
  const finding: Body[] = KINDS.filter((kind) => terms[kind].length > 0).map((kind) => {
    const marked = terms[kind].slice(0, MAX_FINDING_TERMS).map((term) => mark + term)
    // Indices of an earlier layout have keywords, which have another analyzer.
    return { query: { bool: { filter, must: { match: { [kind]: { query: marked.join(' '), analyzer: 'whitespace' } } } } } }
  })
  const counting = finding.length > 0 ? countTerms(collectionId, terms, mark) : []
  if (vector) finding.push({ knn: nearest(vector, candidates, filter) })
  if (finding.length === 0) return []

  const fields = { size: candidates, docvalue_fields: [...FIELDS] }
  const responses = await run([...finding.map((body) => ({ ...body, ...fields })), ...counting])
  const found = responses.slice(0, finding.length)
  const hits = new Map(found.flatMap((response) => response.hits.hits).map((hit) => [hit._id!, hit]))
  const coverage = toCoverage(terms, responses.slice(finding.length))
  const near = toCosines(vector ? found.at(-1) : undefined)
  const ids = [...hits.keys()]
  const [far, anchored] = await compare(run, [
    { vector, ids: ids.filter((id) => !near.has(id)) },
    { vector: anchor, ids },
  ])
  return [...hits.values()].flatMap((hit): ChunkCandidate[] => {
    const id = hit._id!
    const field = (name: (typeof FIELDS)[number]) => (hit.fields?.[name] as readonly string[] | undefined)?.[0] ?? null
    const cosine = near.get(id) ?? far!.get(id) ?? null
    const anchorCosine = anchored!.get(id) ?? null
    // It was deleted between the round trips.
    if ((vector && cosine === null) || (anchor && anchorCosine === null)) return []
    return [
      {
        chunkId: readChunkId(collectionId, id),
        documentId: field('document_id')!,
        generation: field('generation')!,
        language: field('language'),
        cosine,
        anchorCosine,
        ...coverage(field('term_counts')!),
      },
    ]
  })
}

function nearest(vector: Float32Array, k: number, filter: estypes.QueryDslQueryContainer[]): estypes.KnnSearch {
  const num_candidates = Math.min(MAX_COMPARED, k * COMPARED_PER_CANDIDATE)
  return { field: 'vector', query_vector: decimals(vector), k, num_candidates, filter, rescore_vector: { oversample: OVERSAMPLE } }
}

/** The exact cosines of entries, one map for each vector: no more pass the filter than are wanted, so all are compared. */
async function compare(
  run: (searches: readonly Body[]) => Promise<readonly SearchResponse[]>,
  pairs: readonly { readonly vector: Float32Array | null | undefined; readonly ids: readonly string[] }[],
): Promise<readonly Cosines[]> {
  const searched = pairs.filter(({ vector, ids }) => vector && ids.length > 0)
  const searches = searched.map(({ vector, ids }) => ({
    knn: nearest(vector!, ids.length, [{ ids: { values: [...ids] } }]),
    size: ids.length,
  }))
  const responses = searches.length > 0 ? await run(searches) : []
  return pairs.map((pair) => toCosines(responses[searched.indexOf(pair)]))
}

/** Elasticsearch's score is (1 + cosine) / 2. */
function toCosines(response: SearchResponse | undefined): Cosines {
  return new Map(response?.hits.hits.map(({ _id, _score }) => [_id!, Math.max(-1, Math.min(1, 2 * _score! - 1))]))
}

/**
 * Gives the answer of each search.
 * @throws {ServiceUnavailable} one of them cannot be answered whole
 */
export async function searchAll(
  client: Client,
  searches: readonly (readonly [estypes.MsearchMultisearchHeader, Body])[],
  signal: AbortSignal,
): Promise<readonly SearchResponse[]> {
  const whole = searches.flatMap(([header, body]) => [{ ...header, allow_partial_search_results: false }, body])
  const { responses } = await awaitResponse(client.msearch({ searches: whole }, { signal }), signal)
  return responses.map((response) => {
    if ('error' in response) throw toFailure(response.status, `a search, status ${response.status}, ${response.error.type}`)
    if (response.timed_out) throw toFailure(504, 'a search timed out')
    return response
  })
}
