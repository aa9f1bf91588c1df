import type { EventData, EventRecord } from '../../../common/events/event-log.ts'
import type { WebhookEvent } from '../../../common/events/webhook-events.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { endableIterator } from '../../../common/process/endable-iterator.ts'
import type { DocumentRecord } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'

/** Fields whose change is an event. */
const TOLD = ['status', 'stage', 'progress', 'error', 'warnings', 'pageCount', 'chunkCount', 'language', 'attempts'] as const

/** What an event says of a document as it is after the change; null when the change is none that is told. */
export function describeChange(before: DocumentRecord, changed: Readonly<Record<string, unknown>>): EventData | null {
  if (!TOLD.some((field) => field in changed)) return null
  return toSnapshot({ ...before, ...changed })
}

export function toSnapshot(document: Pick<DocumentRecord, 'collectionId' | (typeof TOLD)[number]>): EventData {
  return { collectionId: document.collectionId, ...Object.fromEntries(TOLD.map((field) => [field, document[field]])) } as EventData
}

/** The event of a deletion. */
export function describeDeletion({ collectionId }: Pick<DocumentRecord, 'collectionId'>): EventData {
  return { collectionId, deleted: true }
}

/**
 * The document as it was right after the event, its unchanging fields as they are now; null when it has been deleted,
 * then or since.
 */
export async function findDocumentAt(
  { store }: Pick<Deps, 'store'>,
  { organizationId, subject, data }: EventRecord,
): Promise<DocumentRecord | null> {
  if (data.deleted) return null
  const document = await store.documents.findOne({ _id: subject, organizationId, listed: true })
  return document && { ...document, ...(data as Partial<DocumentRecord>) }
}

/**
 * The changes of the documents of the caller's organization, or of one collection, after a cursor or from now on.
 * @throws {KisError} `invalid_request` the cursor.
 */
export function followDocuments(
  { events }: Pick<Deps, 'events'>,
  { caller }: LinkContext,
  { collectionId, after }: { readonly collectionId: string | null; readonly after: string | null },
): AsyncIterableIterator<EventRecord, undefined> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  const followed = events.follow(organizationId, after)
  return endableIterator<EventRecord>(
    async () => {
      for (;;) {
        const next = await followed.next()
        if (next.done || collectionId === null || next.value.data.collectionId === collectionId) return next
      }
    },
    async () => {
      await followed.return?.()
    },
  )
}

/**
 * What a webhook says of an event: enough to know whether the document must be looked at, and nothing of what is in it.
 */
export function toWebhookEvent({ sequence, subject, at, data }: EventRecord): WebhookEvent {
  const common = { document_id: subject, collection_id: data.collectionId, cursor: String(sequence) }
  if (data.deleted) return { type: 'document.deleted', subject, sequence, at, data: common }
  // Events of documents hold these fields: `TOLD`.
  const { status, stage, progress, error, chunkCount, attempts } = data as unknown as Pick<DocumentRecord, (typeof TOLD)[number]>
  return {
    type: 'document.updated',
    subject,
    sequence,
    at,
    data: { ...common, status, stage, progress, error_code: error?.code ?? null, chunk_count: chunkCount, attempts },
  }
}
