import type { IndexedDocument } from '../ports/chunk-index.ts'
import type { DocumentRecord } from './records.ts'

type Attributes = IndexedDocument['attributes']
type Details = Pick<DocumentRecord, 'fileName' | 'metadata'>

const METADATA = 'metadata.'

/** What filters compare of a document's chunks: `facts` that never change, and the document's own name and metadata. */
export function documentAttributes(facts: Attributes, { fileName, metadata }: Details): Attributes {
  const own = Object.entries(metadata).map(([key, value]) => [METADATA + key, value])
  const others = Object.entries(facts).filter(([field]) => !field.startsWith(METADATA))
  return { ...Object.fromEntries(others), file_name: fileName, ...Object.fromEntries(own) }
}
