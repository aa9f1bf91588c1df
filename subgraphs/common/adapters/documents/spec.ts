import type { CollectionSpec } from '../../ports/document-store.ts'
import { describeKind, isObject, type StoredObject, singleValueAt } from './stored-value.ts'

/** SQLite's SQL contains names and index paths unquoted, so they are plain words. */
const COLLECTION_NAME = /^[a-z][a-z0-9_]*$/
export const INDEX_PATH = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$/

/** @throws {TypeError} the declaration is wrong: a defect of the caller */
export function checkSpec(spec: CollectionSpec): void {
  if (!COLLECTION_NAME.test(spec.name)) throw new TypeError(`${spec.name} is no name of a collection: lower case with underscores`)
  for (const index of spec.indexes) {
    if (index.fields.length === 0) throw new TypeError(`an index of ${spec.name} has no fields`)
    for (const path of index.fields) {
      if (!INDEX_PATH.test(path))
        throw new TypeError(`an index of ${spec.name} has the path ${JSON.stringify(path)}, which is not plain words`)
    }
  }
}

/**
 * Checks that indexed fields have single values. A unique index needs them: with MongoDB one document may lack the
 * field, with SQLite any number.
 * @throws {TypeError} an indexed field has an unsuitable value: a defect of the caller
 */
export function checkIndexed(spec: CollectionSpec, document: StoredObject): void {
  for (const { fields, unique, sparse } of spec.indexes) {
    const values = fields.map((path) => singleValueAt(document, path.split('.')))
    const isIndexed = !(sparse && values[0] === undefined)
    for (const [position, value] of values.entries()) {
      const isBad = isObject(value) || (unique && isIndexed && (value ?? null) === null)
      if (isBad) throw new TypeError(`${fields[position]} is in an index of ${spec.name}, so it cannot be ${describeKind(value)}`)
    }
  }
}
