import type { IndexedGeneration } from '../ports/chunk-index.ts'
import type { DocumentRecord } from './records.ts'

/**
 * Returns whether the chunks of this ingestion belong in the index because it is live or running. Read `document` after
 * the index. Otherwise, an ingestion that started in between would look orphaned. False is final, because generations
 * are never reused.
 */
export function belongs(document: DocumentRecord | undefined, { generation }: Pick<IndexedGeneration, 'generation'>): boolean {
  if (!document) return false
  // A running deletion also removes its chunks.
  if (!document.listed) return true
  // A worker removes what a new version has replaced.
  if (document.job?.kind === 'tidy') return true
  return generation === document.liveGeneration || (document.job !== undefined && generation === nameGeneration(document))
}

/** Returns whether all chunks of a ready document exist. */
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

/** Returns whether a repair of the index has requeued the document and the repair is not finished. */
export function isInRepair({ payer, status }: DocumentRecord): boolean {
  return payer !== undefined && (status === 'queued' || status === 'processing')
}

function nameGeneration({ generation }: DocumentRecord): string {
  return `g${generation}`
}
