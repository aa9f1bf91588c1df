import { graphql, type ResultOf, type VariablesOf } from '../../../data/graphql.ts'
import type { CollectionFilters } from '../common/filters.ts'

export const SEARCH = graphql(`
  query Search($input: SearchInput!) {
    searchCollection(input: $input) {
      cost
      rerank { applied error model { id } }
      facets { field values { value documents } }
      hits {
        score
        relevance
        lexicalRank
        vectorRank
        highlights { start end }
        before { id text }
        after { id text }
        explanation { closeness wordCoverage gramCoverage evidence tokenCloseness rankBeforeRerank }
        chunk { id text headingPath pageStart pageEnd document { id name language } }
      }
    }
  }
`)

export type SearchInput = VariablesOf<typeof SEARCH>['input']
export type Found = ResultOf<typeof SEARCH>['searchCollection']
export type Hit = Found['hits'][number]

export const DEFAULT_LIMIT = 10
/** The value of `rerank` in the address for "no reranker, although the collection has one". */
export const NO_RERANK = 'none'

/** Returns the filter of a search; null: none. */
export function toFilter({ language, file, field, value }: CollectionFilters): object | null {
  const filters: object[] = []
  if (language) filters.push({ op: 'eq', field: 'language', value: language })
  if (file) filters.push({ op: 'contains', field: 'file_name', value: file })
  if (field && value !== undefined) filters.push(equals(`metadata.${field}`, value))
  return filters.length > 1 ? { op: 'and', filters } : (filters[0] ?? null)
}

/** Returns the condition for a field. A reader types a number or "true" as text; the field may hold either. */
function equals(field: string, text: string): object {
  const typed = /^-?\d{1,15}$/.test(text) ? Number(text) : text === 'true' ? true : text === 'false' ? false : undefined
  const asText = { op: 'eq', field, value: text }
  return typed === undefined ? asText : { op: 'or', filters: [asText, { op: 'eq', field, value: typed }] }
}

/** Returns the search in the address; null: none. */
export function toInput(collectionId: string, filters: CollectionFilters): SearchInput | null {
  const { query, mode = 'HYBRID', min, limit = DEFAULT_LIMIT, expand = 0, group, rerank } = filters
  if (!query?.trim()) return null
  return {
    collectionId,
    query: query.trim(),
    mode,
    limit,
    expand,
    minScore: min ?? null,
    filter: toFilter(filters),
    groupBy: group ? 'DOCUMENT' : null,
    facets: ['language', 'media_type'],
    // Absent, the collection's own model reranks; null means none.
    ...(rerank && { rerankModel: rerank === NO_RERANK ? null : rerank }),
  }
}

interface HitGroup {
  readonly document: Hit['chunk']['document']
  readonly hits: readonly { readonly hit: Hit; readonly rank: number }[]
}

/** Groups the hits by document, in the order of the result. */
export function toGroups(hits: readonly Hit[]): readonly HitGroup[] {
  const groups = new Map<string, { document: HitGroup['document']; hits: { hit: Hit; rank: number }[] }>()
  for (const [index, hit] of hits.entries()) {
    const { document } = hit.chunk
    const group = groups.get(document.id) ?? { document, hits: [] }
    group.hits.push({ hit, rank: index + 1 })
    groups.set(document.id, group)
  }
  return [...groups.values()]
}
