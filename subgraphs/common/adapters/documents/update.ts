import type { Update } from '../../ports/document-store.ts'
import { equal, meets, type Test, toTests } from './filter.ts'
import { describeKind, isDate, isObject, type Stored, type StoredObject, type StoredScalar, splitPath, toStored } from './stored-value.ts'

/** One change of an update. Changes of one update never touch the same path. */
export type Change = { readonly fields: readonly string[] } & (
  | { readonly operator: 'set' | 'setOnInsert'; readonly value: Stored }
  | { readonly operator: 'unset' }
  | { readonly operator: 'inc'; readonly by: number }
  | { readonly operator: 'push'; readonly values: readonly Stored[] }
  | { readonly operator: 'pull'; readonly elements: { readonly equal: StoredScalar } | { readonly meet: readonly Test[] } }
)

/** @throws {TypeError} the update is not one that the port allows: a defect of the caller */
export function toChanges(update: Update): readonly Change[] {
  const operators = Object.entries(update)
  if (operators.length === 0) throw new TypeError('an update has at least one operator')
  const changes = operators.flatMap(([name, operands]) => {
    if (typeof operands !== 'object' || operands === null) throw new TypeError(`${name} is no update operator`)
    return Object.entries(operands).map(([path, operand]) => toChange(name, path, operand))
  })
  checkConflicts(changes)
  return changes
}

function toChange(name: string, path: string, operand: unknown): Change {
  const fields = splitPath(path)
  if (fields[0] === '_id' && name !== '$setOnInsert') throw new TypeError('_id never changes')
  switch (name) {
    case '$set':
    case '$setOnInsert':
      return { fields, operator: name === '$set' ? 'set' : 'setOnInsert', value: toStored(operand, path) }
    case '$unset':
      return { fields, operator: 'unset' }
    case '$inc':
      if (typeof operand !== 'number') throw new TypeError(`${path}: $inc takes a safe integer`)
      return { fields, operator: 'inc', by: toStored(operand, path) as number }
    case '$push':
      return { fields, operator: 'push', values: pushed(operand, path) }
    case '$pull':
      return { fields, operator: 'pull', elements: pulled(operand, path) }
    default:
      throw new TypeError(`the update operator ${name} is not in the port`)
  }
}

function pushed(operand: unknown, path: string): readonly Stored[] {
  if (typeof operand !== 'object' || operand === null || !('$each' in operand)) return [toStored(operand, path)]
  if (!Array.isArray(operand.$each) || Object.keys(operand).length > 1) throw new TypeError(`${path}: $push takes { $each: [...] } alone`)
  return toStored(operand.$each, path) as Stored[]
}

function pulled(operand: unknown, path: string): { equal: StoredScalar } | { meet: readonly Test[] } {
  const isConditions = typeof operand === 'object' && operand !== null && !(operand instanceof Date)
  return isConditions ? { meet: toTests(operand as Parameters<typeof toTests>[0]) } : { equal: toStored(operand, path) as StoredScalar }
}

/** MongoDB refuses an update that touches one path twice, or a path and one inside it. */
function checkConflicts(changes: readonly Change[]): void {
  if (changes.length < 2) return
  const paths = changes.map(({ fields }) => `${fields.join('.')}.`).sort()
  for (let i = 1; i < paths.length; i++) {
    if (paths[i]!.startsWith(paths[i - 1]!)) throw new TypeError(`the update touches ${paths[i]!.slice(0, -1)} twice`)
  }
}

/**
 * Changes `document` in place.
 * @throws {TypeError} a target has the wrong type; the caller must drop the partly changed document
 */
export function applyChanges(document: StoredObject, changes: readonly Change[], inserting: boolean): void {
  for (const change of changes) {
    if (change.operator === 'setOnInsert' && !inserting) continue
    const creates = change.operator !== 'unset' && change.operator !== 'pull'
    const parent = findParent(document, change.fields, creates)
    if (parent) applyTo(parent, change.fields.at(-1)!, change)
  }
}

/**
 * Returns the object that has the last field of the path; undefined when the object does not exist and `creates` is
 * false.
 */
function findParent(document: StoredObject, fields: readonly string[], creates: boolean): StoredObject | undefined {
  let parent = document
  for (const field of fields.slice(0, -1)) {
    if (!Object.hasOwn(parent, field)) {
      if (!creates) return undefined
      parent[field] = {}
    }
    const next = parent[field]
    if (Array.isArray(next)) throw new TypeError(`${fields.join('.')} leads through an array`)
    if (!isObject(next)) {
      if (!creates) return undefined
      throw new TypeError(`${fields.join('.')} leads through ${describeKind(next)}`)
    }
    parent = next
  }
  return parent
}

function applyTo(parent: StoredObject, field: string, change: Change): void {
  const target = Object.hasOwn(parent, field) ? parent[field] : undefined
  switch (change.operator) {
    case 'set':
    case 'setOnInsert':
      parent[field] = change.value
      return
    case 'unset':
      delete parent[field]
      return
    case 'inc': {
      if (target !== undefined && typeof target !== 'number') throw wrongTarget('$inc', change, target)
      const sum = (target ?? 0) + change.by
      if (!Number.isSafeInteger(sum)) throw new TypeError(`$inc takes ${change.fields.join('.')} beyond the safe integers`)
      parent[field] = sum
      return
    }
    case 'push':
      if (target === undefined) parent[field] = [...change.values]
      else if (Array.isArray(target)) for (const value of change.values) target.push(value)
      else throw wrongTarget('$push', change, target)
      return
    case 'pull':
      if (target === undefined) return
      if (!Array.isArray(target)) throw wrongTarget('$pull', change, target)
      parent[field] = target.filter((element) => !isPulled(element, change.elements))
  }
}

function isPulled(element: Stored, elements: { equal: StoredScalar } | { meet: readonly Test[] }): boolean {
  if ('equal' in elements) return !Array.isArray(element) && equal(element, elements.equal)
  return isObject(element) && meets(element, elements.meet)
}

function wrongTarget(operator: string, change: Change, target: Stored): TypeError {
  return new TypeError(`${operator} cannot be applied to ${change.fields.join('.')}, which is of type ${describeKind(target)}`)
}

/** The document that an upsert starts from: the equalities of its filter. */
export function toSeed(tests: readonly Test[]): StoredObject {
  const seed: StoredObject = {}
  for (const test of tests) {
    if (test.operator !== 'eq') continue
    findParent(seed, test.fields, true)![test.fields.at(-1)!] = isDate(test.value) ? { ...test.value } : test.value
  }
  return seed
}
