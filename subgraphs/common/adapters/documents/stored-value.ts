/**
 * The form in which the adapters compare values and SQLite stores them: JSON, with a Date as `{"$date": milliseconds
 * since 1970}`. No other field name starts with `$`.
 */
export type Stored = StoredScalar | Stored[] | StoredObject
export type StoredScalar = string | number | boolean | null | { $date: number }
export interface StoredObject {
  [field: string]: Stored
}

/** Levels of objects and arrays, as BSON allows. The limit also catches a value that contains itself. */
const MAX_DEPTH = 100
/** Bytes of JSON. MongoDB limits a document to 16 MiB. */
const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
/** Maximum number of UTF-8 bytes of one UTF-16 unit. */
const MAX_UNIT_BYTES = 3

/** @throws {TypeError} one of the two stores would change or refuse the value: a defect of the caller */
export function toStored(value: unknown, where: string, depth = 0): Stored {
  switch (typeof value) {
    case 'string':
      // UTF-8 cannot encode a lone surrogate, so an index could not find the value again.
      return value.isWellFormed() ? value : value.toWellFormed()
    case 'number':
      if (Number.isSafeInteger(value)) return value
      throw new TypeError(`${where} is ${value}; numbers are safe integers`)
    case 'boolean':
      return value
    case 'object':
      return value === null ? null : toStoredObject(value, where, depth)
    default:
      throw new TypeError(`${where} is of type ${typeof value}, which cannot be stored`)
  }
}

function toStoredObject(value: object, where: string, depth: number): Stored {
  if (depth >= MAX_DEPTH) throw new TypeError(`${where} is nested deeper than ${MAX_DEPTH} levels`)
  if (value instanceof Date) {
    const time = value.getTime()
    if (Number.isNaN(time)) throw new TypeError(`${where} is an invalid date`)
    return { $date: time }
  }
  if (Array.isArray(value)) return Array.from(value, (item, index) => toStored(item, `${where}.${index}`, depth + 1))
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) throw new TypeError(`${where} is not a plain object`)
  const stored: StoredObject = {}
  for (const [field, inner] of Object.entries(value)) {
    checkField(field, where)
    stored[field] = toStored(inner, `${where}.${field}`, depth + 1)
  }
  return stored
}

function checkField(field: string, where: string): void {
  if (field === '' || field === '__proto__' || field.startsWith('$') || field.includes('.') || field.includes('\0')) {
    throw new TypeError(`${where} has a field named ${JSON.stringify(field)}, which cannot be stored`)
  }
}

/**
 * Splits a dotted path into field names.
 * @throws {TypeError} a name cannot be stored
 */
export function splitPath(path: string): readonly string[] {
  const fields = path.split('.')
  for (const field of fields) checkField(field, 'a path')
  return fields
}

/**
 * Returns the value at a path; undefined when a field is absent or its parent is not an object.
 * @throws {TypeError} the path leads through or to an array
 */
export function singleValueAt(document: StoredObject, fields: readonly string[]): Exclude<Stored, Stored[]> | undefined {
  let value: Stored | undefined = document
  for (const field of fields) {
    if (!isObject(value) || !Object.hasOwn(value, field)) return undefined
    value = (value as StoredObject)[field]
    if (Array.isArray(value)) throw new TypeError(`${fields.join('.')} leads to an array; only single values are compared and indexed`)
  }
  return value as Exclude<Stored, Stored[]>
}

export function isObject(value: Stored | undefined): value is StoredObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isDate(value)
}

export function isDate(value: Stored | undefined): value is { $date: number } {
  return typeof value === 'object' && value !== null && '$date' in value
}

/** Returns MongoDB's name of the type, for error messages. */
export function describeKind(value: Stored | undefined): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return isDate(value) ? 'date' : typeof value
}

/**
 * Returns the document as JSON.
 * @throws {RangeError} the document is larger than 16 MiB
 */
export function encodeDocument(document: Stored): string {
  const text = JSON.stringify(document)
  // Counting bytes is slow, so only long texts are counted.
  if (text.length > MAX_DOCUMENT_BYTES / MAX_UNIT_BYTES && Buffer.byteLength(text) > MAX_DOCUMENT_BYTES)
    throw new RangeError(`a document of ${Buffer.byteLength(text)} bytes is larger than ${MAX_DOCUMENT_BYTES}`)
  return text
}

export function parseDocument(text: string): StoredObject {
  return JSON.parse(text)
}

/**
 * Converts the parsed document to the form that callers use, with Dates. Changes `document` in place: it was parsed for
 * this call.
 */
export function withDates(document: Stored): unknown {
  if (typeof document !== 'object' || document === null) return document
  if (isDate(document)) return new Date(document.$date)
  const fields = document as Record<string, unknown>
  // `for … in` takes twice as long on parsed objects. Wallets are read several times for each call.
  for (const field of Object.keys(fields)) {
    const value = fields[field]
    if (typeof value === 'object' && value !== null) fields[field] = withDates(value as Stored)
  }
  return document
}
