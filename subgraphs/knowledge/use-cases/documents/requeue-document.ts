import { reportChange } from '../../../common/events/event-log.ts'
import { type DocumentRecord, newJob } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { toSnapshot } from './document-events.ts'

/** The organization whose wallet pays, and its API key. */
export type Payer = NonNullable<DocumentRecord['payer']>

/**
 * Requeues a document because the index has lost some of its chunks. Searches do not find it until it is ready. Returns
 * false and changes nothing if the document has changed since it was read.
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
    // A new generation separates the chunks of the new ingestion from those of the old one.
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
