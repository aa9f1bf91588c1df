import type { CollectionSpec, IndexSpec } from '../../../ports/document-store.ts'
import { INDEX_PATH } from '../../documents/spec.ts'
import type { FileKind } from '../database.ts'

export function nameTable(spec: Pick<CollectionSpec, 'name'>): string {
  return `"documents_${spec.name}"`
}

/** The name describes the index, so a changed declaration creates another index. */
export function nameIndex(spec: CollectionSpec, index: IndexSpec): string {
  return `"${spec.name}(${index.fields.join()})${index.unique ? ' unique' : ''}${index.sparse ? ' sparse' : ''}"`
}

/**
 * The SQL of a field's value in an index: a string, an integer, or a date's milliseconds; null where the field is
 * absent.
 */
export function keyExpression(path: string): string {
  if (path === '_id') return 'id'
  if (!INDEX_PATH.test(path)) throw new TypeError(`${JSON.stringify(path)} cannot be sorted by`)
  const json = `."${path.replaceAll('.', '"."')}"`
  return `coalesce(json_extract(doc, '$${json}."$date"'), json_extract(doc, '$${json}'))`
}

/** WITHOUT ROWID stores the documents in the order of `_id`, and makes `_id` the last part of every index. */
export function toSchema(spec: CollectionSpec): readonly string[] {
  const table = nameTable(spec)
  const indexes = spec.indexes.map((index) => {
    const where = index.sparse ? ` WHERE ${keyExpression(index.fields[0]!)} IS NOT NULL` : ''
    const keys = index.fields.map(keyExpression).join(', ')
    return `CREATE ${index.unique ? 'UNIQUE ' : ''}INDEX IF NOT EXISTS ${nameIndex(spec, index)} ON ${table} (${keys})${where}`
  })
  return [`CREATE TABLE IF NOT EXISTS ${table} (id TEXT PRIMARY KEY NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID`, ...indexes]
}

/** The kind of a file of documents. */
export const DOCUMENT_FILE: FileKind = {
  name: 'document store',
  /** "KisD" in ASCII. */
  applicationId: 0x4b69_7344,
  schemaVersion: 1,
  /** With this size a document of a few KB fits into one or two pages, without a chain. */
  pageSize: 8192,
}
