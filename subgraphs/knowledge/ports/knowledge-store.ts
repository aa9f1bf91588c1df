import { JOB_TURNS_INDEX, SLOW_JOB_TURNS_INDEX } from '../../common/documents/fair-jobs.ts'
import { EVENT_HEADS, EVENTS, type EventCollections, OUTBOX_INDEX } from '../../common/events/event-log.ts'
import type { DocumentCollection, DocumentStore } from '../../common/ports/document-store.ts'
import type { BlobRecord, CollectionRecord, DocumentRecord, FileRecord, UsageRecord } from '../domain/records.ts'

/** The primary store's collections. On MongoDB each shards by `organizationId`. Ids sort by creation time. */
export interface KnowledgeStore extends EventCollections {
  readonly collections: DocumentCollection<CollectionRecord>
  readonly files: DocumentCollection<FileRecord>
  readonly blobs: DocumentCollection<BlobRecord>
  readonly documents: DocumentCollection<DocumentRecord>
  readonly usage: DocumentCollection<UsageRecord>
}

export function knowledgeStore(store: Pick<DocumentStore, 'collection'>): KnowledgeStore {
  return {
    collections: store.collection({
      name: 'collections',
      indexes: [
        { fields: ['organizationId', 'listed'] },
        { fields: ['organizationId', 'code'], unique: true },
        { fields: ['job.dueAt'], sparse: true },
        JOB_TURNS_INDEX,
      ],
    }),
    files: store.collection({ name: 'files', indexes: [{ fields: ['organizationId'] }] }),
    blobs: store.collection({ name: 'blobs', indexes: [{ fields: ['pendingAt'], sparse: true }] }),
    documents: store.collection({
      name: 'documents',
      indexes: [
        { fields: ['collectionId', 'listed'] },
        { fields: ['collectionId', 'listed', 'status'] },
        { fields: ['attachKey'], unique: true, sparse: true },
        { fields: ['job.dueAt'], sparse: true },
        JOB_TURNS_INDEX,
        SLOW_JOB_TURNS_INDEX,
        OUTBOX_INDEX,
      ],
    }),
    usage: store.collection({ name: 'usage', indexes: [] }),
    events: store.collection(EVENTS),
    eventHeads: store.collection(EVENT_HEADS),
  }
}
