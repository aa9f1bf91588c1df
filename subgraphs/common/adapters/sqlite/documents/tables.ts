import type { CollectionSpec, IndexSpec } from '../../../ports/document-store.ts'
import { INDEX_PATH } from '../../documents/spec.ts'

export function tableOf(spec: Pick<CollectionSpec, 'name'>): string {
  return `"documents_${spec.name}"`
}

/** The name describes the index, so that a changed declaration creates another index. */
export function indexNameOf(spec: CollectionSpec, index: IndexSpec): string {
  return `"${spec.name}(${index.fields.join()})${index.unique ? ' unique' : ''}${index.sparse ? ' sparse' : ''}"`
}

/**
 * The value of a field in the indexes: a string, an integer, or a date's milliseconds; null where the field is absent.
 */
export function keyOf(path: string): string {
  if (path === '_id') return 'id'
  if (!INDEX_PATH.test(path)) throw new TypeError(`${JSON.stringify(path)} cannot be sorted by`)
  const json = `."${path.replaceAll('.', '"."')}"`
  return `coalesce(json_extract(doc, '$${json}."$date"'), json_extract(doc, '$${json}'))`
}

/** WITHOUT ROWID stores the documents in the order of `_id`, and makes `_id` the last part of every index. */
export function schemaOf(spec: CollectionSpec): readonly string[] {
  const table = tableOf(spec)
  const indexes = spec.indexes.map((index) => {
    const where = index.sparse ? ` WHERE ${keyOf(index.fields[0]!)} IS NOT NULL` : ''
    const keys = index.fields.map(keyOf).join(', ')
    return `CREATE ${index.unique ? 'UNIQUE ' : ''}INDEX IF NOT EXISTS ${indexNameOf(spec, index)} ON ${table} (${keys})${where}`
  })
  return [`CREATE TABLE IF NOT EXISTS ${table} (id TEXT PRIMARY KEY NOT NULL, doc TEXT NOT NULL) WITHOUT ROWID`, ...indexes]
}
