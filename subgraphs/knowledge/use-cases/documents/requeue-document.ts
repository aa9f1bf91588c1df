import { reportChange } from '../../../common/events/event-log.ts'
import { type DocumentRecord, newJob } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { toSnapshot } from './document-events.ts'

/** The organization whose wallet pays, and the API key in whose name it pays. */
export type Payer = NonNullable<DocumentRecord['payer']>

/**
 * Queues a document again because the index has lost chunks of it. Searches find nothing of it until it is ready.
 * Returns false and changes nothing if the document has changed since it was read.
 */
export async function requeueDocument(
  { store, clock, events, wake }: Pick<Deps, 'store' | 'clock' | 'events' | 'wake'>,
  document: DocumentRecord,
  payer: Payer,
): Promise<boolean> {
  const { _id, organizationId, status, generation } = document
  const now = clock.now()
  const change = { status: 'queued', error: null } as const
  const event = reportChange(organizationId, now, toSnapshot({ ...document, ...change }))
  const queued = await store.documents.findOneAndUpdate(
    { _id, listed: true, status, generation },
    // A new generation keeps chunks of the old ingestion apart from those of the new one.
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
