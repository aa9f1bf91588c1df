import { tell } from '../../../common/events/event-log.ts'
import { type DocumentRecord, newJob } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { toSnapshot } from './document-events.ts'

/** Whose wallet, and in whose name. */
export type Payer = NonNullable<DocumentRecord['payer']>

/**
 * Has a document ingested again whose chunks the index has lost. Searches find nothing of it until it is ready. False:
 * it has changed since it was read, and then nothing is done.
 */
export async function requeueDocument(
  { store, clock, events, wake }: Pick<Deps, 'store' | 'clock' | 'events' | 'wake'>,
  document: DocumentRecord,
  payer: Payer,
): Promise<boolean> {
  const { _id, organizationId, status, generation } = document
  const now = clock.now()
  const change = { status: 'queued', error: null } as const
  const event = tell(organizationId, now, toSnapshot({ ...document, ...change }))
  const queued = await store.documents.findOneAndUpdate(
    { _id, listed: true, status, generation },
    // Of a new number, so that no chunk of the old ingestion is taken for one of the new.
    {
      $set: { ...change, payer: { ...payer }, job: { ...newJob('ingest', organizationId, now) }, ...event.$set },
      $push: event.$push,
      $inc: { generation: 1 },
    },
  )
  if (!queued) return false
  events.kick(organizationId)
  wake()
  return true
}
