import type { Client, estypes } from '@elastic/elasticsearch'
import type { ChunkCandidate, ChunkQuery } from '../../ports/chunk-index.ts'
import { type LexicalLeg, lexicalLeg } from './bm25.ts'
import { awaitAnswer, toFailure } from './client.ts'
import { filterQuery } from './filter.ts'
import { type IndexNames, readChunkId } from './indices.ts'
import { cosineWith, decimals } from './small-vectors.ts'
import { decodeCounts, type Leg, termMark } from './term-counts.ts'

/**
 * The most that the server allows. Passages that exist more than once, in one collection or in several of the index,
 * split Lucene's graph into islands, which a search with fewer candidates does not leave. With this many the server
 * also compares every vector when fewer pass the filter.
 */
const NUM_CANDIDATES = 10_000
/** The graph orders by int8 in Lucene's own scale. This many times the candidates are then ordered by their floats. */
const OVERSAMPLE = 2
/**
 * A lexical leg finds its candidates by the weights of their terms, and then scores them exactly. So it scores more
 * than it gives.
 */
const SCORED_PER_CANDIDATE = 2
/**
 * The rarest terms of a leg, which find its candidates. The longest query has three times as many, but common terms say
 * little.
 */
const MAX_LEG_TERMS = 512
/**
 * The server gives up a search after this long, even if nobody waits for it anymore. Without it a filter that compares
 * many values would go on.
 */
const TIMEOUT = '5s'
const FIGURES = ['document_id', 'generation', 'language', 'term_counts', 'small_vector'] as const

type Body = estypes.SearchSearchRequestBody

/**
 * Searches in two round trips: first how common the query's terms are in this collection, then the three legs together.
 */
export async function search(
  client: Client,
  names: IndexNames,
  dimensions: number,
  query: ChunkQuery,
  signal: AbortSignal,
): Promise<readonly ChunkCandidate[]> {
  const { collectionId, vector, candidates } = query
  const header = { index: names.chunks(dimensions), routing: collectionId }
  const run: Run = (searches) =>
    searchAll(
      client,
      searches.map((body) => [header, { timeout: TIMEOUT, ...body }] as const),
      signal,
    )
  const mark = termMark(collectionId)
  const legs = await lexicalLegs(run, query, mark)
  const filter = [{ term: { collection_id: collectionId } }, ...(query.filter ? [filterQuery(query.filter)] : [])]
  const figures: Body = { track_total_hits: false, _source: false, docvalue_fields: [...FIGURES] }
  const searches: Body[] = []
  if (vector) {
    const knn = { field: 'vector', query_vector: decimals(vector), k: candidates, filter }
    const effort = { num_candidates: NUM_CANDIDATES, rescore_vector: { oversample: OVERSAMPLE } }
    searches.push({ knn: { ...knn, ...effort }, size: candidates, ...figures })
  }
  for (const leg of ['words', 'grams'] as const) {
    const should = legs[leg].terms
      .slice(0, MAX_LEG_TERMS)
      .map(({ text, weight }) => ({ term: { [leg]: { value: mark + text, boost: weight } } }))
    const size = candidates * SCORED_PER_CANDIDATE
    if (should.length > 0) searches.push({ query: { bool: { filter, should, minimum_should_match: 1 } }, size, ...figures })
  }
  if (searches.length === 0) return []
  const answers = await run(searches)
  const hits = new Map(answers.flatMap((answer) => answer.hits.hits).map((hit) => [hit._id!, hit]))
  // Elasticsearch's own scores only order the legs. The figures come from each chunk's small fields: so a candidate has
  // all of them, whichever leg found it, and neither another collection in the same shard nor a deleted chunk in a
  // segment affects them.
  const cosine = vector && cosineWith(vector)
  const anchorCosine = query.anchor ? cosineWith(query.anchor) : null
  const scored = [...hits.values()].map((hit): ChunkCandidate => {
    const field = (name: (typeof FIGURES)[number]) => (hit.fields?.[name] as readonly string[] | undefined)?.[0] ?? null
    const counts = decodeCounts(field('term_counts')!)
    return {
      chunkId: readChunkId(collectionId, hit._id!),
      documentId: field('document_id')!,
      generation: field('generation')!,
      language: field('language'),
      cosine: cosine === null ? null : cosine(field('small_vector')!),
      anchorCosine: anchorCosine === null ? null : anchorCosine(field('small_vector')!),
      wordCoverage: legs.words.coverage(counts),
      gramCoverage: legs.grams.coverage(counts),
    }
  })
  const nearest = vector ? answers[0]!.hits.hits.map((hit) => readChunkId(collectionId, hit._id!)) : []
  const found = new Set([
    ...nearest,
    ...best(scored, candidates, ({ wordCoverage }) => wordCoverage),
    ...best(scored, candidates, ({ gramCoverage }) => gramCoverage),
  ])
  return scored.filter(({ chunkId }) => found.has(chunkId))
}

function best(scored: readonly ChunkCandidate[], count: number, toScore: (candidate: ChunkCandidate) => number): readonly string[] {
  return scored
    .filter((candidate) => toScore(candidate) > 0)
    .sort((a, b) => toScore(b) - toScore(a) || (a.chunkId < b.chunkId ? -1 : 1))
    .slice(0, count)
    .map(({ chunkId }) => chunkId)
}

type Run = (searches: readonly Body[]) => Promise<readonly estypes.MsearchMultiSearchItem<unknown>[]>

/**
 * Counts cover the collection's live chunks: the terms have its mark, so nothing else has them, and the count of a
 * filter skips deleted chunks.
 */
async function lexicalLegs(run: Run, { collectionId, words, grams }: ChunkQuery, mark: string): Promise<Readonly<Record<Leg, LexicalLeg>>> {
  const distinct = { words: [...new Set(words)], grams: [...new Set(grams)] }
  const asked = (['words', 'grams'] as const).flatMap((leg) => distinct[leg].map((text) => ({ term: { [leg]: mark + text } })))
  if (asked.length === 0) return { words: lexicalLeg('words', new Map(), 0, 0), grams: lexicalLeg('grams', new Map(), 0, 0) }
  const [totals, counted] = await run([
    {
      size: 0,
      track_total_hits: true,
      query: { term: { collection_id: collectionId } },
      aggs: { words: { sum: { field: 'word_count' } }, grams: { sum: { field: 'gram_count' } } },
    },
    { size: 0, track_total_hits: false, aggs: { terms: { filters: { filters: asked } } } },
  ])
  const chunks = (totals!.hits.total as estypes.SearchTotalHits).value
  const sums = totals!.aggregations as Record<Leg, estypes.AggregationsSumAggregate>
  const { buckets } = counted!.aggregations!.terms as estypes.AggregationsFiltersAggregate
  const having = (buckets as estypes.AggregationsFiltersBucket[]).map(({ doc_count }) => doc_count)
  const toLeg = (leg: Leg, from: number) =>
    lexicalLeg(leg, new Map(distinct[leg].map((text, i) => [text, having[from + i]!])), chunks, sums[leg].value ?? 0)
  return { words: toLeg('words', 0), grams: toLeg('grams', distinct.words.length) }
}

/**
 * Gives the answer of each search.
 * @throws {ServiceUnavailable} one of them cannot be answered whole
 */
export async function searchAll(
  client: Client,
  searches: readonly (readonly [estypes.MsearchMultisearchHeader, Body])[],
  signal: AbortSignal,
): Promise<readonly estypes.MsearchMultiSearchItem<unknown>[]> {
  const whole = searches.flatMap(([header, body]) => [{ ...header, allow_partial_search_results: false }, body])
  const { responses } = await awaitAnswer(client.msearch({ searches: whole }, { signal }), signal)
  return responses.map((response) => {
    if ('error' in response) throw toFailure(response.status, `a search, status ${response.status}, ${response.error.type}`)
    if (response.timed_out) throw toFailure(504, 'a search timed out')
    return response
  })
}
