import type { Filter } from '../../ports/document-store.ts'
import {
  describeKind,
  isDate,
  isObject,
  type Stored,
  type StoredObject,
  type StoredScalar,
  singleValueAt,
  splitPath,
  toStored,
} from './stored-value.ts'

export type RangeOperator = 'gt' | 'gte' | 'lt' | 'lte'

/** One comparison of a filter. A document meets the filter if it passes every test. */
export type Test = { readonly path: string; readonly fields: readonly string[] } & (
  | { readonly operator: 'eq' | RangeOperator; readonly value: StoredScalar }
  | { readonly operator: 'in'; readonly values: readonly StoredScalar[] }
)

/** Most values of one `$in`, as the port says. */
const MAX_IN_VALUES = 1_000

/** @throws {TypeError} the filter is not one that the port allows: a defect of the caller */
export function toTests(filter: Filter): readonly Test[] {
  return Object.entries(filter).flatMap(([path, condition]) => testsOfPath(path, condition))
}

function testsOfPath(path: string, condition: unknown): readonly Test[] {
  const fields = splitPath(path)
  if (typeof condition !== 'object' || condition === null || condition instanceof Date) {
    return [{ path, fields, operator: 'eq', value: toScalar(condition, path) }]
  }
  const tests = Object.entries(condition).map(([name, operand]): Test => {
    switch (name) {
      case '$eq':
        return { path, fields, operator: 'eq', value: toScalar(operand, path) }
      case '$gt':
      case '$gte':
      case '$lt':
      case '$lte': {
        if (operand === null) throw new TypeError(`${path}: ${name} null has no meaning`)
        return { path, fields, operator: name.slice(1) as RangeOperator, value: toScalar(operand, path) }
      }
      case '$in': {
        if (!Array.isArray(operand) || operand.length > MAX_IN_VALUES) {
          throw new TypeError(`${path}: $in takes an array of at most ${MAX_IN_VALUES} values`)
        }
        return { path, fields, operator: 'in', values: operand.map((value) => toScalar(value, path)) }
      }
      default:
        throw new TypeError(`${path}: the filter operator ${name} is not in the port`)
    }
  })
  if (tests.length === 0) throw new TypeError(`${path}: an empty condition`)
  const kinds = new Set(tests.map((test) => ('value' in test && test.operator !== 'eq' ? describeKind(test.value) : undefined)))
  kinds.delete(undefined)
  if (kinds.size > 1) throw new TypeError(`${path}: the bounds of a range are of different types`)
  return tests
}

function toScalar(value: unknown, path: string): StoredScalar {
  const stored = toStored(value, path)
  if (path === '_id' && stored !== null && typeof stored !== 'string') throw new TypeError('_id is compared with strings')
  if (Array.isArray(stored) || isObject(stored))
    throw new TypeError(`${path} is compared with ${describeKind(stored)}, not with a single value`)
  return stored as StoredScalar
}

/** The organization whose documents the filter wants. Empty: it names none. */
export function organizationOf(tests: readonly Test[]): string {
  const test = tests.find(({ path, operator }) => path === 'organizationId' && operator === 'eq')
  return test?.operator === 'eq' && typeof test.value === 'string' ? test.value : ''
}

export function meets(document: StoredObject, tests: readonly Test[]): boolean {
  return tests.every((test) => {
    const found = singleValueAt(document, test.fields)
    if (test.operator === 'in') return isOneOf(found, test.values)
    return test.operator === 'eq' ? equal(found, test.value) : inRange(found, test.operator, test.value)
  })
}

function isOneOf(found: Stored | undefined, values: readonly StoredScalar[]): boolean {
  if (typeof found === 'object' && found !== null) return values.some((value) => equal(found, value))
  // Each of a thousand documents may be looked up among a thousand ids.
  return values.includes(found ?? null)
}

/** Values of different types are never equal. Null equals an absent field. */
export function equal(found: Stored | undefined, value: StoredScalar): boolean {
  if (isDate(value)) return isDate(found) && found.$date === value.$date
  return (found ?? null) === value
}

/** Values of another type are outside every range, as in MongoDB. */
function inRange(found: Stored | undefined, operator: RangeOperator, limit: StoredScalar): boolean {
  if (found === undefined || describeKind(found) !== describeKind(limit)) return false
  const order = compare(found, limit)
  switch (operator) {
    case 'gt':
      return order > 0
    case 'gte':
      return order >= 0
    case 'lt':
      return order < 0
    case 'lte':
      return order <= 0
  }
}

/** Compares two values of the same type, neither of them null. */
function compare(a: Stored, b: Stored): number {
  if (isDate(a) && isDate(b)) return a.$date - b.$date
  // By UTF-8 bytes, as SQLite and MongoDB order strings. JavaScript orders characters beyond the basic plane
  // differently.
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b))
  return Number(a) - Number(b)
}
