import type { IndexedGeneration } from '../ports/chunk-index.ts'
import type { DocumentRecord } from './records.ts'

/**
 * Whether chunks of this ingestion belong in the index: it is live, or running. Read `document` after the index, or an
 * ingestion that began in between would look foreign. Once false, this stays false: generations are never reused.
 */
export function belongs(document: DocumentRecord | undefined, { generation }: Pick<IndexedGeneration, 'generation'>): boolean {
  if (!document) return false
  // A running deletion also removes its chunks.
  if (!document.listed) return true
  // A worker removes what a new version has replaced.
  if (document.job?.kind === 'tidy') return true
  return generation === document.liveGeneration || (document.job !== undefined && generation === nameGeneration(document))
}

/** Whether all chunks of a ready document exist. */
export function isWhole(
  { chunkCount }: Pick<DocumentRecord, 'chunkCount'>,
  found: Pick<IndexedGeneration, 'chunks' | 'lastOrdinal'> | undefined,
): boolean {
  return found?.chunks === chunkCount && found.lastOrdinal === chunkCount - 1
}

/**
 * Returns the last document whose generations are all on the page. Returns the page's only document if its generations
 * fill the page.
 */
export function lastWhole(entries: readonly IndexedGeneration[]): string {
  const cut = entries.at(-1)!.documentId
  return entries.findLast(({ documentId }) => documentId !== cut)?.documentId ?? cut
}

/** A repair of the index has queued the document again, and is not finished. */
export function isInRepair({ payer, status }: DocumentRecord): boolean {
  return payer !== undefined && (status === 'queued' || status === 'processing')
}

/** Name of the record's current generation. */
function nameGeneration({ generation }: DocumentRecord): string {
  return `g${generation}`
}
