import { Long } from 'mongodb'
import type { Update } from '../../ports/document-store.ts'
import { isDate, type Stored } from '../documents/stored-value.ts'
import { toChanges } from '../documents/update.ts'

const MAX_INT32 = 2 ** 31 - 1
const MIN_INT32 = -(2 ** 31)

/** The value as the driver takes it. The driver returns Dates and whole numbers unchanged. */
export function toBson(value: Stored): unknown {
  // The driver would store it as a double, and MongoDB's `$inc` would then count in doubles.
  if (typeof value === 'number') return value > MAX_INT32 || value < MIN_INT32 ? Long.fromNumber(value) : value
  if (typeof value !== 'object' || value === null) return value
  if (isDate(value)) return new Date(value.$date)
  if (Array.isArray(value)) return value.map(toBson)
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, toBson(inner)]))
}

/** The update in the driver's form. */
export function toBsonUpdate(update: Update): Record<string, Record<string, unknown>> {
  const operators: Record<string, Record<string, unknown>> = {}
  for (const change of toChanges(update)) {
    const name = `$${change.operator}`
    operators[name] ??= {}
    const operands = operators[name]
    const path = change.fields.join('.')
    switch (change.operator) {
      case 'set':
      case 'setOnInsert':
        operands[path] = toBson(change.value)
        break
      case 'unset':
        operands[path] = ''
        break
      case 'inc':
        operands[path] = toBson(change.by)
        break
      case 'push':
        operands[path] = { $each: change.values.map(toBson) }
        break
      case 'pull':
        operands[path] = update.$pull![path]
    }
  }
  return operators
}
