import type { DocumentRecord } from '../records.ts'
import type { FilterValue } from './search-filter.ts'

/** The values of a field among the found documents, with the number of documents for each. */
export interface Facet {
  readonly field: string
  /** Most frequent first. */
  readonly values: readonly { readonly value: FilterValue; readonly documents: number }[]
}

/** Maximum values of a facet. Rarer values are omitted. */
const MAX_VALUES = 20

/**
 * Counts documents by the value of each field. Documents without a value do not count. The keys of `mediaTypes` are
 * file IDs.
 */
export function countFacets(
  fields: readonly string[],
  documents: readonly DocumentRecord[],
  mediaTypes: ReadonlyMap<string, string>,
): readonly Facet[] {
  return fields.map((field) => {
    const counts = new Map<FilterValue, number>()
    for (const document of documents) {
      const value = readValue(field, document, mediaTypes)
      if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1)
    }
    const values = [...counts].map(([value, count]) => ({ value, documents: count }))
    values.sort((a, b) => b.documents - a.documents || (String(a.value) < String(b.value) ? -1 : 1))
    return { field, values: values.slice(0, MAX_VALUES) }
  })
}

function readValue(field: string, document: DocumentRecord, mediaTypes: ReadonlyMap<string, string>): FilterValue | null {
  if (field === 'language') return document.language
  if (field === 'file_name') return document.fileName
  if (field === 'media_type') return mediaTypes.get(document.fileId) ?? null
  const name = field.slice('metadata.'.length)
  return Object.hasOwn(document.metadata, name) ? document.metadata[name]! : null
}
