import type { CollectionSpec, IndexSpec } from '../../ports/document-store.ts'
import type { Test } from './filter.ts'

/** How a query reaches its documents. */
export interface Access {
  readonly index: IndexSpec
  /** Tests that the index itself answers. */
  readonly served: readonly Test[]
  /** Tests to run on each document that `served` leaves; then there are at most 1,000. */
  readonly judged: readonly Test[]
  /** The full sort, which ends with `_id`. */
  readonly order: readonly string[]
  /** Whether many more entries may be read than match. */
  readonly walks: boolean
}

/** The index that every collection has. */
export const PRIMARY_KEY: IndexSpec = { fields: ['_id'], unique: true }

/** Gives the access to the one document that can match; undefined when the filter does not fix a key. */
export function chooseKey(spec: CollectionSpec, tests: readonly Test[]): Access | undefined {
  return keyAccess(spec, tests, [], isFixed)
}

/**
 * Gives the best index for a query; undefined when there is none. An index serves a filter if it contains every field
 * of it and its first field is among them. With a unique key, the filter may have other fields too. It serves a sort
 * if, apart from the fields that the filter fixes by equality, its fields are those of the sort in the same order.
 * `sort` is undefined when the order does not matter.
 */
export function chooseIndex(spec: CollectionSpec, tests: readonly Test[], sort: readonly string[] | undefined): Access | undefined {
  const byKey = keyAccess(spec, tests, sort ?? [], (test) => isFixed(test) || isList(test))
  if (byKey) return byKey
  const rated = listIndexes(spec).flatMap((index) => rangeAccess(index, tests, sort) ?? [])
  return rated.sort((a, b) => b.rating - a.rating)[0]?.access
}

/** The sort of a count for `chooseIndex`: one with a limit may read whole collections. */
export function toCountSort(tests: readonly Test[], limit: number | undefined): readonly string[] | undefined {
  return tests.length === 0 && limit !== undefined ? ['_id'] : undefined
}

function listIndexes(spec: CollectionSpec): readonly IndexSpec[] {
  return [PRIMARY_KEY, ...spec.indexes]
}

/**
 * By the first unique index on each of whose fields there is an equality. `lastIs` decides whether the last field may be
 * a list, of at most 1,000 values.
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
  // A sparse index lacks documents without the field, and null also means those.
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
  // A fixed field further down stays in the order, so that SQLite sees that the order is that of the index.
  const order = fields.slice(fixed)
  return { access: { index, served: tests, judged: [], order, walks }, rating: 4 * fixed + (isRange ? 2 : 0) - (walks ? 1 : 0) }
}

/** `_id` ends every index and every order, so that no two documents are equal in it. */
function orderWithId(fields: readonly string[]): readonly string[] {
  return fields.includes('_id') ? fields : [...fields, '_id']
}

function isFixed(test: Test): boolean {
  return test.operator === 'eq' && test.value !== null
}

/** Not a list with null: it would also need absent fields, which are elsewhere in the index. */
function isList(test: Test): boolean {
  return test.operator === 'in' && !test.values.includes(null)
}

/**
 * Documents or entries of a short read. The embedded store reads so many on the event loop, in about a millisecond. Most
 * background work reads no more at a time, and so needs no thread.
 */
const MAX_SHORT = 100

/** Whether a read of at most so many documents or entries may take long. Organizations take turns with those. */
export function isLong(access: Access, count: number): boolean {
  return access.walks || count > MAX_SHORT
}
