import type { CollectionSpec } from '../../../ports/document-store.ts'
import type { RangeOperator, Test } from '../../documents/filter.ts'
import { type Access, PRIMARY_KEY } from '../../documents/index-choice.ts'
import { isDate, type StoredScalar } from '../../documents/stored-value.ts'
import { keyExpression, nameIndex, nameTable } from './tables.ts'

/**
 * A statement and its parameters. The text depends only on the shape of the query, so that prepared statements are
 * reused.
 */
export interface Sql {
  readonly text: string
  readonly parameters: readonly (string | number)[]
}

const COMPARISONS: Readonly<Record<RangeOperator, string>> = { gt: '>', gte: '>=', lt: '<', lte: '<=' }

/** Selects `columns` of the documents that `access` reaches, before the tests in `access.judged`. */
export function selectSql(columns: string, spec: CollectionSpec, access: Access): Sql {
  // The adapter chooses the index, because SQLite has no statistics here. The query must fail rather than scan.
  const by = access.index === PRIMARY_KEY ? 'NOT INDEXED' : `INDEXED BY ${nameIndex(spec, access.index)}`
  const conditions = access.served.map((test) => toCondition(test, access.served))
  const where = conditions.length > 0 ? ` WHERE ${conditions.map(({ text }) => text).join(' AND ')}` : ''
  return { text: `SELECT ${columns} FROM ${nameTable(spec)} ${by}${where}`, parameters: conditions.flatMap(({ parameters }) => parameters) }
}

/** Sorts the selection in the order of the index. */
export function ordered(sql: Sql, access: Access, direction: 1 | -1): Sql {
  const keys = access.order.map((path) => `${keyExpression(path)} ${direction === 1 ? 'ASC' : 'DESC'}`)
  return { ...sql, text: `${sql.text} ORDER BY ${keys.join(', ')}` }
}

/** Counts what `access` reaches, up to `limit`. */
export function countSql(spec: CollectionSpec, access: Access, limit: number | undefined): Sql {
  if (limit === undefined) return selectSql('count(*)', spec, access)
  const counted = limited(selectSql('1', spec, access), limit)
  return { ...counted, text: `SELECT count(*) FROM (${counted.text})` }
}

/**
 * `+ 0` prevents SQLite from preparing a statement with `LIMIT ?` again for each run, which takes as long as a read.
 */
export function limited(sql: Sql, limit: number): Sql {
  return { text: `${sql.text} LIMIT ? + 0`, parameters: [...sql.parameters, limit] }
}

function toCondition(test: Test, all: readonly Test[]): Sql {
  const key = keyExpression(test.path)
  if (test.operator === 'in') {
    return { text: `${key} IN (SELECT value FROM json_each(?))`, parameters: [JSON.stringify(test.values.map(toKeyValue))] }
  }
  if (test.value === null) return { text: `${key} IS NULL`, parameters: [] }
  const parameters = [toKeyValue(test.value)]
  if (test.operator === 'eq') return { text: `${key} = ?`, parameters }
  const range = `${key} ${COMPARISONS[test.operator]} ?`
  // SQLite orders every string after every number. A range has one type, so without a lower limit it starts at the
  // empty string.
  const isString = typeof test.value === 'string'
  const closing: readonly Test['operator'][] = isString ? ['gt', 'gte'] : ['lt', 'lte']
  const isClosed = closing.includes(test.operator) || all.some((other) => other.path === test.path && closing.includes(other.operator))
  return { text: isClosed ? range : `${range} AND ${key} ${isString ? '>=' : '<'} ''`, parameters }
}

/** Returns the value in the form in which `keyExpression` puts it into the index. */
function toKeyValue(value: StoredScalar): string | number {
  if (isDate(value)) return value.$date
  return typeof value === 'boolean' ? Number(value) : (value as string | number)
}
