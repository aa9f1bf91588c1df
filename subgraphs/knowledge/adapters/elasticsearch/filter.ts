import type { estypes } from '@elastic/elasticsearch'
import type { FilterValue, SearchFilter } from '../../domain/search/search-filter.ts'
import { attributeTerm, endOfType, typePrefix } from './attributes.ts'

type Query = estypes.QueryDslQueryContainer
/** An upper limit above every page number, within the range of an integer field. */
const MAX_PAGE = 1_000_000_000

type Operator = 'eq' | 'gt' | 'gte' | 'lt' | 'lte'

/**
 * A comparison with an absent value, or one of another type, is false. Therefore, `ne` and `not` match documents
 * without the field.
 */
export function filterQuery(filter: SearchFilter): Query {
  switch (filter.op) {
    case 'and':
      return { bool: { filter: filter.filters.map(filterQuery) } }
    case 'or':
      return anyOf(filter.filters.map(filterQuery))
    case 'not':
      return { bool: { must_not: [filterQuery(filter.filter)] } }
    case 'in':
      return anyOf(filter.values.map((value) => condition('eq', filter.field, value)))
    case 'contains':
      return contains(filter.field, filter.value)
    case 'ne':
      return { bool: { must_not: [condition('eq', filter.field, filter.value)] } }
    default:
      return condition(filter.op, filter.field, filter.value)
  }
}

function condition(op: Operator, field: string, value: FilterValue): Query {
  if (field === 'page') return typeof value === 'number' ? pageCondition(op, value) : { match_none: {} }
  if (field === 'document_id') return op === 'eq' ? { term: { document_id: String(value) } } : { range: { document_id: { [op]: value } } }
  const term = attributeTerm(field, value)
  switch (op) {
    case 'eq':
      return { term: { attributes: term } }
    case 'gt':
    case 'gte':
      return { range: { attributes: { [op]: term, lt: endOfType(field, value) } } }
    default:
      return { range: { attributes: { [op]: term, gte: typePrefix(field, value) } } }
  }
}

/**
 * Returns a pattern that folds ASCII case in the text but not in the field's name, because names may differ only in
 * case.
 */
function contains(field: string, text: string): Query {
  const value = text
    .replace(/[^\p{L}\p{N}\p{M}]/gu, '\\$&')
    .replace(/[A-Za-z]/g, (letter) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`)
  const prefix = typePrefix(field, text).replace(/[^\p{L}\p{N}\p{M}]/gu, '\\$&')
  return { regexp: { attributes: { value: `${prefix}.*${value}.*`, flags: 'NONE' } } }
}

/** A chunk's pages are a range. A comparison is true if it is true for one of them. */
function pageCondition(op: Operator, page: number): Query {
  const value = Math.max(-MAX_PAGE, Math.min(MAX_PAGE, page))
  switch (op) {
    case 'eq':
      return { bool: { filter: [{ range: { page_start: { lte: value } } }, { range: { page_end: { gte: value } } }] } }
    case 'gt':
    case 'gte':
      return { range: { page_end: { [op]: value } } }
    default:
      return { range: { page_start: { [op]: value } } }
  }
}

/** An empty list matches nothing. An empty `should` would match everything. */
function anyOf(queries: readonly Query[]): Query {
  return queries.length === 0 ? { match_none: {} } : { bool: { should: [...queries], minimum_should_match: 1 } }
}
