import { gatewayOperation, type Selected } from '../../schema/operations.ts'
import type { ResponseOf } from '../contract/build.ts'
import * as operations from '../contract/search.ts'
import { wholeList } from '../http/lists.ts'
import { PAGE_BOXES, toPageBoxes } from '../http/page-boxes.ts'
import { type Call, type JsonObject, ok, type Route, route } from '../http/route.ts'
import { lowerCase } from '../http/values.ts'

const BESIDE = 'id text headingPath pageStart pageEnd charStart charEnd'

const HIT = `collectionId score relevance lexicalRank vectorRank highlights { start end } before { ${BESIDE} } after { ${BESIDE} }` as const
const CHUNK = `${BESIDE} document { id name status } file { id }` as const
const MORE = `groups { document { id } hits { chunk { id } } } facets { field values { value documents } }
  rerank { model { id } applied error } rewrite { query applied error }` as const

export const SEARCH = gatewayOperation(
  `query Search($input: SearchInput!) { searchCollection(input: $input) { hits { ${HIT} chunk { ${CHUNK} } } ${MORE} } }`,
)
/** A separate operation, because one with `@include` takes the longer path through the gateway. */
const SEARCH_WITH_BOXES = gatewayOperation(
  `query SearchWithBoxes($input: SearchInput!) { searchCollection(input: $input) { hits { ${HIT} chunk { ${CHUNK} ${PAGE_BOXES} } } ${MORE} } }`,
)

interface ChunkData {
  readonly id: string
  readonly text: string
  readonly headingPath: readonly string[]
  readonly pageStart: number | null
  readonly pageEnd: number | null
  readonly charStart: number
  readonly charEnd: number
  readonly pageBoxes?: Parameters<typeof toPageBoxes>[0]['pageBoxes']
}

export interface HitData {
  readonly collectionId: string
  readonly score: number
  readonly relevance: Selected<'SearchHit', 'relevance'>['relevance']
  readonly lexicalRank: number | null
  readonly vectorRank: number | null
  readonly highlights: readonly { readonly start: number; readonly end: number }[]
  readonly before: readonly ChunkData[]
  readonly after: readonly ChunkData[]
  readonly chunk: ChunkData & {
    readonly document: { readonly id: string; readonly name: string; readonly status: string }
    readonly file: { readonly id: string }
  }
}

export function toSearchResult({
  collectionId,
  score,
  relevance,
  lexicalRank,
  vectorRank,
  highlights,
  before,
  after,
  chunk,
}: HitData): operations.SearchResult {
  const { chunk_id, text, ...location } = toChunk(chunk)
  return {
    object: 'search_result',
    chunk_id,
    text,
    score,
    relevance: lowerCase(relevance),
    lexical_rank: lexicalRank,
    vector_rank: vectorRank,
    ...location,
    document_id: chunk.document.id,
    document_status: lowerCase(chunk.document.status) as operations.SearchResult['document_status'],
    file: { id: chunk.file.id, file_name: chunk.document.name },
    collection_id: collectionId,
    highlights,
    before: before.map(toChunk),
    after: after.map(toChunk),
  }
}

function toChunk(chunk: ChunkData) {
  return {
    chunk_id: chunk.id,
    text: chunk.text,
    heading_path: chunk.headingPath,
    page_start: chunk.pageStart,
    page_end: chunk.pageEnd,
    char_start: chunk.charStart,
    char_end: chunk.charEnd,
    ...toPageBoxes(chunk),
  }
}

type SearchResponse = ResponseOf<typeof operations.searchCollection>

async function search({ execute, body }: Call, where: JsonObject) {
  const input = {
    ...where,
    query: body.query,
    limit: body.limit,
    mode: (body.mode as string | undefined)?.toUpperCase(),
    filter: body.filter,
    rerankModel: body.rerank_model,
    history: (body.history as readonly { readonly role: string; readonly content: string }[] | undefined)?.map(({ role, content }) => ({
      role: role.toUpperCase(),
      content,
    })),
    rewriteModel: body.rewrite_model,
    minScore: body.min_score,
    lexicalWeight: body.lexical_weight,
    expand: body.expand,
    groupBy: (body.group_by as string | undefined)?.toUpperCase(),
    hitsPerDocument: body.hits_per_document,
    facets: body.facets,
  }
  const { hits, groups, facets, rerank, rewrite } = (await execute(body.page_boxes === true ? SEARCH_WITH_BOXES : SEARCH, { input }))
    .searchCollection
  return ok({
    ...wholeList(hits.map(toSearchResult), ({ chunk_id }) => chunk_id),
    groups: groups?.map((group) => ({ document_id: group.document.id, chunk_ids: group.hits.map(({ chunk }) => chunk.id) })) ?? null,
    facets: facets as SearchResponse['facets'],
    rerank: rerank && { model: rerank.model?.id ?? null, applied: rerank.applied, error: lowerCase(rerank.error) },
    rewrite,
  })
}

export const searchRoutes: readonly Route[] = [
  route({ operation: operations.searchCollection, handle: (call) => search(call, { collectionId: call.params.id }) }),
  route({ operation: operations.searchCollections, handle: (call) => search(call, { collectionIds: call.body.collection_ids }) }),
]
