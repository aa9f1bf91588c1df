import type { FilterValue, SearchFilter } from '../../domain/search/search-filter.ts'

/** A condition over `d`, a document, and `c`, its chunk. Everything from the caller is a parameter. */
export interface FilterSql {
  readonly sql: string
  readonly parameters: readonly (string | number)[]
}

const OPERATORS = { eq: '=', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const
/** A chunk's pages are a range: a comparison holds if it holds for one of them. */
const PAGE_CONDITIONS = {
  eq: 'c.page_start <= ?1 AND c.page_end >= ?1',
  gt: 'c.page_end > ?1',
  gte: 'c.page_end >= ?1',
  lt: 'c.page_start < ?1',
  lte: 'c.page_start <= ?1',
} as const
type Operator = keyof typeof OPERATORS

/** A comparison with an absent value, or one of another type, is false. So `ne` and `not` find what lacks the field. */
export function filterSql(filter: SearchFilter): FilterSql {
  switch (filter.op) {
    case 'and':
    case 'or':
      return joined(filter.filters.map(filterSql), filter.op)
    case 'not':
      return negated(filterSql(filter.filter))
    case 'in':
      return joined(
        filter.values.map((value) => condition('eq', filter.field, value)),
        'or',
      )
    case 'contains':
      return contains(filter.field, filter.value)
    case 'ne':
      return negated(condition('eq', filter.field, filter.value))
    default:
      return condition(filter.op, filter.field, filter.value)
  }
}

function condition(op: Operator, field: string, value: FilterValue): FilterSql {
  if (field === 'page') {
    if (typeof value !== 'number') return { sql: 'FALSE', parameters: [] }
    const sql = PAGE_CONDITIONS[op]
    return { sql: `coalesce(${sql.replaceAll('?1', '?')}, FALSE)`, parameters: Array(sql.split('?1').length - 1).fill(value) }
  }
  if (field === 'document_id') return { sql: `d.document_id ${OPERATORS[op]} ?`, parameters: [String(value)] }
  // `field` names one key, with any characters, so it is compared with json_each's key and not used as a path.
  const types = typeof value === 'string' ? "'text'" : typeof value === 'number' ? "'integer', 'real'" : value ? "'true'" : "'false'"
  const comparison = typeof value === 'boolean' ? '' : ` AND a.value ${OPERATORS[op]} ?`
  return {
    sql: `EXISTS (SELECT 1 FROM json_each(d.attributes) a WHERE a.key = ? AND a.type IN (${types})${comparison})`,
    parameters: typeof value === 'boolean' ? [field] : [field, value],
  }
}

function contains(field: string, text: string): FilterSql {
  // SQLite's LIKE folds the case of ASCII only.
  const pattern = `%${text.replace(/[\\%_]/g, '\\$&')}%`
  return {
    sql: `EXISTS (SELECT 1 FROM json_each(d.attributes) a WHERE a.key = ? AND a.type = 'text' AND a.value LIKE ? ESCAPE '\\')`,
    parameters: [field, pattern],
  }
}

function joined(parts: readonly FilterSql[], by: 'and' | 'or'): FilterSql {
  if (parts.length === 0) return { sql: by === 'and' ? 'TRUE' : 'FALSE', parameters: [] }
  return {
    sql: `(${parts.map(({ sql }) => sql).join(by === 'and' ? ' AND ' : ' OR ')})`,
    parameters: parts.flatMap((part) => part.parameters),
  }
}

function negated({ sql, parameters }: FilterSql): FilterSql {
  return { sql: `NOT (${sql})`, parameters }
}
