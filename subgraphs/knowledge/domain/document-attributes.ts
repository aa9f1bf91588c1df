import type { IndexedDocument } from '../ports/chunk-index.ts'
import type { DocumentRecord } from './records.ts'

type Attributes = IndexedDocument['attributes']
type Details = Pick<DocumentRecord, 'fileName' | 'metadata'>

/** Prefix of the attributes from a document's metadata. */
export const METADATA_PREFIX = 'metadata.'

/** Returns the attributes that filters compare: the immutable `facts`, and the document's name and metadata. */
export function documentAttributes(facts: Attributes, { fileName, metadata }: Details): Attributes {
  const own = Object.entries(metadata).map(([key, value]) => [METADATA_PREFIX + key, value])
  const others = Object.entries(facts).filter(([field]) => !field.startsWith(METADATA_PREFIX))
  return { ...Object.fromEntries(others), file_name: fileName, ...Object.fromEntries(own) }
}
