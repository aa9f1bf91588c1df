import { type DocumentRecord, newJob } from '../domain/records.ts'
import type { Deps } from './deps.ts'

/** Whose wallet, and in whose name. */
export type Payer = NonNullable<DocumentRecord['payer']>

/**
 * Has a document ingested again whose chunks the index has lost. Searches find nothing of it until it is ready. False: it has changed
 * since it was read, and then nothing is done.
 */
export async function requeueDocument(
  { store, clock, events, wake }: Pick<Deps, 'store' | 'clock' | 'events' | 'wake'>,
  { _id, status, generation }: DocumentRecord,
  payer: Payer,
): Promise<boolean> {
  const queued = await store.documents.findOneAndUpdate(
    { _id, listed: true, status, generation },
    // Of a new number, so that no chunk of the old ingestion is taken for one of the new.
    { $set: { status: 'queued', error: null, payer: { ...payer }, job: { ...newJob('ingest', clock.now()) } }, $inc: { generation: 1 } },
  )
  if (!queued) return false
  events.publish(queued)
  wake()
  return true
}
