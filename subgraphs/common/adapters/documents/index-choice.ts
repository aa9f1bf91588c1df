import type { CollectionSpec, IndexSpec } from '../../ports/document-store.ts'
import type { Test } from './filter.ts'

/** How a query reaches its documents. */
export interface Access {
  readonly index: IndexSpec
  /** Compared inside the index. */
  readonly served: readonly Test[]
  /** Judged on each document that `served` leaves, which are then at most 1,000. */
  readonly judged: readonly Test[]
  /** The sort in full: `_id` is last. */
  readonly order: readonly string[]
  /** Whether the entries that are read may be many more than those that match. */
  readonly walks: boolean
}

/** The index that every collection has. */
export const PRIMARY_KEY: IndexSpec = { fields: ['_id'], unique: true }

/** The access to the one document that can match, or undefined when the filter fixes no key. */
export function chooseKey(spec: CollectionSpec, tests: readonly Test[]): Access | undefined {
  return first(indexesOf(spec), (index) => keyAccess(index, tests, [], isFixed))
}

/**
 * The best index for a query, or undefined when none serves it. An index serves a filter when it holds every field of it and the first
 * field is among them; by a unique key, any further field may be compared too. It serves a sort when the fields that the filter does not
 * fix by equality are those of the sort, in its order. `sort` is undefined where the order does not matter.
 */
export function chooseIndex(spec: CollectionSpec, tests: readonly Test[], sort: readonly string[] | undefined): Access | undefined {
  const indexes = indexesOf(spec)
  const byKey = first(indexes, (index) => keyAccess(index, tests, sort ?? [], (test) => isFixed(test) || isList(test)))
  if (byKey) return byKey
  const rated = indexes.flatMap((index) => rangeAccess(index, tests, sort) ?? [])
  return rated.sort((a, b) => b.rating - a.rating)[0]?.access
}

function indexesOf(spec: CollectionSpec): readonly IndexSpec[] {
  return [PRIMARY_KEY, ...spec.indexes]
}

function first(indexes: readonly IndexSpec[], accessOf: (index: IndexSpec) => Access | undefined): Access | undefined {
  for (const index of indexes) {
    const access = accessOf(index)
    if (access) return access
  }
  return undefined
}

/** An equality on each field of a unique index; `lastIs` says whether the last may be a list, of at most 1,000 values. */
function keyAccess(index: IndexSpec, tests: readonly Test[], sort: readonly string[], lastIs: (test: Test) => boolean): Access | undefined {
  if (!index.unique) return undefined
  const served: Test[] = []
  for (const [position, field] of index.fields.entries()) {
    const fixes = position === index.fields.length - 1 ? lastIs : isFixed
    const test = tests.find((test) => test.path === field && fixes(test))
    if (!test) return undefined
    served.push(test)
  }
  return { index, served, judged: tests.filter((test) => !served.includes(test)), order: inOrderOf(sort), walks: false }
}

function rangeAccess(index: IndexSpec, tests: readonly Test[], sort: readonly string[] | undefined) {
  const fields = inOrderOf(index.fields)
  const isEqual = (field: string) => tests.some((test) => test.path === field && test.operator === 'eq')
  const onFirst = tests.filter((test) => test.path === fields[0])
  if (onFirst.length === 0 && (tests.length > 0 || !sort || index.sparse)) return undefined
  // A document without the field is not in a sparse index, and null means such a document too.
  if (index.sparse && onFirst.some((test) => test.operator === 'eq' && test.value === null)) return undefined
  if (tests.some((test) => !fields.includes(test.path) || (test.operator === 'in' && !isList(test)))) return undefined

  if (sort) {
    const free = fields.filter((field) => !isEqual(field))
    const wanted = inOrderOf(sort.filter((field) => !isEqual(field)))
    // The entries of a list of values come value by value, which is no order.
    if (wanted.join() !== free.join() || tests.some((test) => test.operator === 'in')) return undefined
  }
  const fixed = fields.findIndex((field) => !isEqual(field))
  const isBounded = tests.some((test) => test.path === fields[fixed])
  const walks = tests.some((test) => fields.indexOf(test.path) > fixed)
  // A field that is fixed further down stays in the order: SQLite then sees that the order is the index's own.
  const order = fields.slice(fixed)
  return { access: { index, served: tests, judged: [], order, walks }, rating: 4 * fixed + (isBounded ? 2 : 0) - (walks ? 1 : 0) }
}

/** `_id` is last in every index and every order, so that no two documents are equal in it. */
function inOrderOf(fields: readonly string[]): readonly string[] {
  return fields.includes('_id') ? fields : [...fields, '_id']
}

function isFixed(test: Test): boolean {
  return test.operator === 'eq' && test.value !== null
}

/** A list with null would have to look for absent fields too, which are elsewhere in the index. */
function isList(test: Test): boolean {
  return test.operator === 'in' && !test.values.includes(null)
}
