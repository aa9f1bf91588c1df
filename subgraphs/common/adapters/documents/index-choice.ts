import type { CollectionSpec, IndexSpec } from '../../ports/document-store.ts'
import type { Test } from './filter.ts'

/** How a query reaches its documents. */
export interface Access {
  readonly index: IndexSpec
  /** Tests that the index itself evaluates. */
  readonly served: readonly Test[]
  /**
   * Tests that run on each document that `served` leaves. If there are any, `served` leaves at most 1,000 documents.
   */
  readonly judged: readonly Test[]
  /** The full sort, which ends with `_id`. */
  readonly order: readonly string[]
  /** Whether the read may pass over many more entries than match. */
  readonly walks: boolean
}

/** The index that every collection has. */
export const PRIMARY_KEY: IndexSpec = { fields: ['_id'], unique: true }

/** Returns the access to the one document that can match; undefined when the filter does not fix a key. */
export function chooseKey(spec: CollectionSpec, tests: readonly Test[]): Access | undefined {
  return keyAccess(spec, tests, [], isFixed)
}

/**
 * Returns the best index for a query; undefined when there is none. An index serves a filter if the index contains
 * every field of the filter and its first field is among them. With a unique key, the filter may have other fields too.
 * An index serves a sort if, apart from the fields that the filter fixes by equality, its fields are those of the sort
 * in the same order. `sort` is undefined when the order does not matter.
 */
export function chooseIndex(spec: CollectionSpec, tests: readonly Test[], sort: readonly string[] | undefined): Access | undefined {
  const byKey = keyAccess(spec, tests, sort ?? [], (test) => isFixed(test) || isList(test))
  if (byKey) return byKey
  const rated = listIndexes(spec).flatMap((index) => rangeAccess(index, tests, sort) ?? [])
  return rated.sort((a, b) => b.rating - a.rating)[0]?.access
}

/** Returns the sort that `chooseIndex` needs for a count. A count with a limit may read whole collections. */
export function toCountSort(tests: readonly Test[], limit: number | undefined): readonly string[] | undefined {
  return tests.length === 0 && limit !== undefined ? ['_id'] : undefined
}

function listIndexes(spec: CollectionSpec): readonly IndexSpec[] {
  return [PRIMARY_KEY, ...spec.indexes]
}

/**
 * Uses the first unique index on each of whose fields there is an equality. `lastIs` decides whether the last field may
 * be a list, of at most 1,000 values.
 */
function keyAccess(
  spec: CollectionSpec,
  tests: readonly Test[],
  sort: readonly string[],
  lastIs: (test: Test) => boolean,
): Access | undefined {
  for (const index of listIndexes(spec)) {
    if (!index.unique) continue
    const served = index.fields.map((field, position) => {
      const fixes = position === index.fields.length - 1 ? lastIs : isFixed
      return tests.find((test) => test.path === field && fixes(test))
    })
    if (served.every((test) => test !== undefined))
      return { index, served, judged: tests.filter((test) => !served.includes(test)), order: orderWithId(sort), walks: false }
  }
  return undefined
}

function rangeAccess(index: IndexSpec, tests: readonly Test[], sort: readonly string[] | undefined) {
  const fields = orderWithId(index.fields)
  const isEqual = (field: string) => tests.some((test) => test.path === field && test.operator === 'eq')
  const onFirst = tests.filter((test) => test.path === fields[0])
  if (onFirst.length === 0 && (tests.length > 0 || !sort || index.sparse)) return undefined
  // A sparse index lacks documents without the field, and null also matches those documents.
  if (index.sparse && onFirst.some((test) => test.operator === 'eq' && test.value === null)) return undefined
  if (tests.some((test) => !fields.includes(test.path) || (test.operator === 'in' && !isList(test)))) return undefined

  if (sort) {
    const free = fields.filter((field) => !isEqual(field))
    const wanted = orderWithId(sort.filter((field) => !isEqual(field)))
    // A list of values reads the entries value by value, which is not in order.
    if (wanted.join() !== free.join() || tests.some((test) => test.operator === 'in')) return undefined
  }
  const fixed = fields.findIndex((field) => !isEqual(field))
  const isRange = tests.some((test) => test.path === fields[fixed])
  const walks = tests.some((test) => fields.indexOf(test.path) > fixed)
  // A field fixed by equality stays in the order, so that SQLite recognizes the order of the index.
  const order = fields.slice(fixed)
  return { access: { index, served: tests, judged: [], order, walks }, rating: 4 * fixed + (isRange ? 2 : 0) - (walks ? 1 : 0) }
}

/** `_id` ends every index and every order, so no two documents are equal in an order. */
function orderWithId(fields: readonly string[]): readonly string[] {
  return fields.includes('_id') ? fields : [...fields, '_id']
}

function isFixed(test: Test): boolean {
  return test.operator === 'eq' && test.value !== null
}

/** A list with null does not count: null also matches absent fields, which are elsewhere in the index. */
function isList(test: Test): boolean {
  return test.operator === 'in' && !test.values.includes(null)
}

/**
 * Documents or entries of a short read. The embedded store reads as many on the event loop in about 1 ms. Most
 * background work reads no more at a time, so it needs no thread.
 */
const MAX_SHORT = 100

/**
 * Returns whether a read of at most `count` documents or entries may take long. Long reads are served in round robin
 * over the organizations.
 */
export function isLong(access: Access, count: number): boolean {
  return access.walks || count > MAX_SHORT
}
