import type { IndexedGeneration } from '../ports/chunk-index.ts'
import type { DocumentRecord } from './records.ts'

/**
 * Whether chunks of this ingestion belong into the index: it is live, or under way. `document` was read after the index was, or an
 * ingestion that began in between would look foreign. Once false this stays false: no later ingestion has the number of an earlier one.
 */
export function belongs(document: DocumentRecord | undefined, { generation }: Pick<IndexedGeneration, 'generation'>): boolean {
  if (!document) return false
  // A deletion under way takes its chunks along.
  if (!document.listed) return true
  return generation === document.liveGeneration || (document.job !== undefined && generation === generationOf(document))
}

/** Whether all chunks of a ready document are there. */
export function isWhole(
  { chunkCount }: Pick<DocumentRecord, 'chunkCount'>,
  found: Pick<IndexedGeneration, 'chunks' | 'lastOrdinal'> | undefined,
): boolean {
  return found?.chunks === chunkCount && found.lastOrdinal === chunkCount - 1
}

/** A repair of the index has put the document back into the queue, and has not come to its end. */
export function isInRepair({ payer, status }: DocumentRecord): boolean {
  return payer !== undefined && (status === 'queued' || status === 'processing')
}

/** Name of the ingestion that the record is at. */
function generationOf({ generation }: DocumentRecord): string {
  return `g${generation}`
}
