import type { EventData, EventRecord } from '../../../common/events/event-log.ts'
import type { WebhookEvent } from '../../../common/events/webhook-events.ts'
import { requireScope } from '../../../common/identity/principal.ts'
import type { LinkContext } from '../../../common/link/link.ts'
import { endableIterator } from '../../../common/process/endable-iterator.ts'
import type { DocumentRecord, Replacement } from '../../domain/records.ts'
import type { Deps } from '../deps.ts'
import { getCollection } from './collections.ts'

/** The fields whose change publishes an event. */
const PUBLISHED_FIELDS = [
  'status',
  'stage',
  'progress',
  'error',
  'replacement',
  'warnings',
  'pageCount',
  'chunkCount',
  'language',
  'attempts',
] as const
const IN_REPLACEMENT = 'replacement.'

/** Returns the data of an event about a changed document. Returns null if no published field has changed. */
export function describeChange(before: DocumentRecord, changed: Readonly<Record<string, unknown>>): EventData | null {
  const steps = Object.entries(changed).filter(([path]) => path.startsWith(IN_REPLACEMENT))
  if (steps.length === 0 && !PUBLISHED_FIELDS.some((field) => field in changed)) return null
  const own = Object.fromEntries(steps.map(([path, value]) => [path.slice(IN_REPLACEMENT.length), value]))
  const replacement = steps.length === 0 ? {} : { replacement: { ...before.replacement!, ...own } }
  return toSnapshot({ ...before, ...changed, ...replacement })
}

/**
 * Returns the data of an event about a document: its collection and the fields of `TOLD`. Events outlive documents, so
 * they have no names.
 */
export function toSnapshot(document: Pick<DocumentRecord, 'collectionId' | (typeof PUBLISHED_FIELDS)[number]>): EventData {
  const { collectionId, replacement } = document
  const published = Object.fromEntries(PUBLISHED_FIELDS.map((field) => [field, document[field] ?? null]))
  return { collectionId, ...published, replacement: replacement ? withoutNames(replacement) : null } as EventData
}

function withoutNames({ fileId, status, stage, progress, error, createdAt }: Replacement) {
  return { fileId, status, stage, progress, error, createdAt }
}

export function describeDeletion({ collectionId }: Pick<DocumentRecord, 'collectionId'>): EventData {
  return { collectionId, deleted: true }
}

/** Tells events of documents from the others of the same log, which have a kind. */
export function isDocumentEvent({ data }: EventRecord): boolean {
  return data.kind === undefined
}

/**
 * Returns the document as it was right after the event. Fields that never change are read now. Returns null if the
 * document is deleted, by this event or since.
 */
export async function findDocumentAt(
  { store }: Pick<Deps, 'store'>,
  { organizationId, subject, data }: EventRecord,
): Promise<DocumentRecord | null> {
  if (data.deleted) return null
  const document = await store.documents.findOne({ _id: subject, organizationId, listed: true })
  if (!document) return null
  const then = data as Partial<DocumentRecord>
  const file = then.replacement?.fileId
  const { fileName } = [document.replacement, ...(document.versions ?? [])].find((one) => one?.fileId === file) ?? document
  return { ...document, ...then, ...(then.replacement && { replacement: { ...then.replacement, fileName } }) }
}

/**
 * Follows the changes of the organization's documents, or of one collection's, after a cursor or from now on.
 * @throws {NotFound} the organization has no such collection.
 * @throws {KisError} `invalid_request` if the cursor is not valid.
 */
export function followDocuments(
  { events, store }: Pick<Deps, 'events' | 'store'>,
  { caller }: LinkContext,
  { collectionId, after }: { readonly collectionId: string | null; readonly after: string | null },
): AsyncIterableIterator<EventRecord, undefined> {
  const { organizationId } = requireScope(caller, 'knowledge:read')
  const followed = events.follow(organizationId, after)
  let isThere = collectionId === null
  return endableIterator<EventRecord>(
    async () => {
      if (!isThere) await getCollection({ store }, organizationId, collectionId!, 'collectionId')
      isThere = true
      for (;;) {
        const next = await followed.next()
        if (next.done) return next
        if (isDocumentEvent(next.value) && (collectionId === null || next.value.data.collectionId === collectionId)) return next
      }
    },
    async () => {
      await followed.return?.()
    },
  )
}

/**
 * Returns the webhook event for a change. It has what a client needs to decide whether to fetch the document, and none
 * of its content.
 */
export function toWebhookEvent({ sequence, subject, at, data }: EventRecord): WebhookEvent {
  const common = { document_id: subject, collection_id: data.collectionId, cursor: String(sequence) }
  if (data.deleted) return { type: 'document.deleted', subject, sequence, at, data: common }
  // Events of documents have the fields of `TOLD`.
  const { status, stage, progress, error, chunkCount, attempts } = data as unknown as Pick<
    DocumentRecord,
    (typeof PUBLISHED_FIELDS)[number]
  >
  return {
    type: 'document.updated',
    subject,
    sequence,
    at,
    data: { ...common, status, stage, progress, error_code: error?.code ?? null, chunk_count: chunkCount, attempts },
  }
}
