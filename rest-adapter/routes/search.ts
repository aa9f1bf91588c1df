import { gatewayOperation } from '../../schema/operations.ts'
import { wholeList } from '../http/lists.ts'
import { ok, type Route } from '../http/route.ts'

export const SEARCH =
  gatewayOperation(`query Search($input: SearchInput!) { searchCollection(input: $input) { hits { score lexicalRank vectorRank
  chunk { id text headingPath pageStart pageEnd charStart charEnd document { id name } file { id } } } } }`)

export interface HitData {
  readonly score: number
  readonly lexicalRank: number | null
  readonly vectorRank: number | null
  readonly chunk: {
    readonly id: string
    readonly text: string
    readonly headingPath: readonly string[]
    readonly pageStart: number | null
    readonly pageEnd: number | null
    readonly charStart: number
    readonly charEnd: number
    readonly document: { readonly id: string; readonly name: string }
    readonly file: { readonly id: string }
  }
}

export function toSearchResult({ score, lexicalRank, vectorRank, chunk }: HitData) {
  return {
    object: 'search_result',
    chunk_id: chunk.id,
    text: chunk.text,
    score,
    lexical_rank: lexicalRank,
    vector_rank: vectorRank,
    heading_path: chunk.headingPath,
    page_start: chunk.pageStart,
    page_end: chunk.pageEnd,
    char_start: chunk.charStart,
    char_end: chunk.charEnd,
    document_id: chunk.document.id,
    file: { id: chunk.file.id, file_name: chunk.document.name },
  }
}

export const searchRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/collections/{id}/search',
    async handle({ ask, params, body }) {
      const mode = (body.mode as string | undefined)?.toUpperCase()
      const input = { collectionId: params.id, query: body.query, limit: body.limit, mode, filter: body.filter }
      const { searchCollection } = await ask(SEARCH, { input })
      return ok(wholeList(searchCollection.hits.map(toSearchResult), ({ chunk_id }) => chunk_id))
    },
  },
]
