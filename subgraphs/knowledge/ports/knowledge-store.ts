import { FAIR_JOBS_INDEX, SLOW_FAIR_JOBS_INDEX } from '../../common/documents/fair-jobs.ts'
import { EVENT_HEADS, EVENTS, type EventCollections, OUTBOX_INDEX } from '../../common/events/event-log.ts'
import type { DocumentCollection, DocumentStore, StoredDocument } from '../../common/ports/document-store.ts'
import { TASK_LEASES, type TaskLease } from '../../common/process/tasks.ts'
import type {
  BlobRecord,
  CollectionRecord,
  DocumentRecord,
  EvaluationRecord,
  EvaluationWatchRecord,
  FileRecord,
  GoldQuestionRecord,
  ReembeddingRecord,
  SketchRecord,
  UploadRecord,
  UsageRecord,
  WebSourceRecord,
} from '../domain/records.ts'

/** What is known of the whole chunk index. */
interface IndexMark extends StoredDocument {
  readonly version: number
}

/** The primary store's collections. On MongoDB each shards by `organizationId`. Ids sort by creation time. */
export interface KnowledgeStore extends EventCollections {
  readonly collections: DocumentCollection<CollectionRecord>
  readonly files: DocumentCollection<FileRecord>
  readonly blobs: DocumentCollection<BlobRecord>
  readonly uploads: DocumentCollection<UploadRecord>
  readonly sources: DocumentCollection<WebSourceRecord>
  readonly documents: DocumentCollection<DocumentRecord>
  readonly sketches: DocumentCollection<SketchRecord>
  readonly usage: DocumentCollection<UsageRecord>
  readonly goldQuestions: DocumentCollection<GoldQuestionRecord>
  readonly evaluations: DocumentCollection<EvaluationRecord>
  readonly evaluationWatches: DocumentCollection<EvaluationWatchRecord>
  readonly indexMarks: DocumentCollection<IndexMark>
  readonly reembeddings: DocumentCollection<ReembeddingRecord>
  readonly taskLeases: DocumentCollection<TaskLease>
}

export function knowledgeStore(store: Pick<DocumentStore, 'collection'>): KnowledgeStore {
  return {
    collections: store.collection({
      name: 'collections',
      indexes: [
        { fields: ['organizationId', 'listed'] },
        { fields: ['organizationId', 'listed', 'name'] },
        { fields: ['organizationId', 'code'], unique: true },
        { fields: ['job.dueAt'], sparse: true },
        FAIR_JOBS_INDEX,
      ],
    }),
    files: store.collection({ name: 'files', indexes: [{ fields: ['organizationId'] }, { fields: ['organizationId', 'name'] }] }),
    blobs: store.collection({ name: 'blobs', indexes: [{ fields: ['pendingAt'], sparse: true }] }),
    uploads: store.collection({
      name: 'uploads',
      indexes: [{ fields: ['openOf'], sparse: true }, { fields: ['expiresAt'] }, { fields: ['organizationId'] }],
    }),
    sources: store.collection({
      name: 'web_sources',
      indexes: [{ fields: ['collectionId'] }, { fields: ['sourceKey'], unique: true }, { fields: ['dueAt'], sparse: true }],
    }),
    documents: store.collection({
      name: 'documents',
      indexes: [
        { fields: ['collectionId', 'listed'] },
        { fields: ['collectionId', 'listed', 'status'] },
        { fields: ['collectionId', 'listed', 'fileName'] },
        { fields: ['organizationId', 'listed', 'status'] },
        { fields: ['attachKey'], unique: true, sparse: true },
        { fields: ['versionKey'], unique: true, sparse: true },
        { fields: ['job.dueAt'], sparse: true },
        FAIR_JOBS_INDEX,
        SLOW_FAIR_JOBS_INDEX,
        { fields: ['job.lease'], sparse: true },
        { fields: ['parentId', 'listed'], sparse: true },
        OUTBOX_INDEX,
      ],
    }),
    sketches: store.collection({ name: 'sketches', indexes: [{ fields: ['key'] }, { fields: ['documentId'] }] }),
    usage: store.collection({ name: 'usage', indexes: [] }),
    goldQuestions: store.collection({ name: 'gold_questions', indexes: [{ fields: ['collectionId'] }] }),
    evaluations: store.collection({
      name: 'evaluations',
      indexes: [
        { fields: ['collectionId'] },
        { fields: ['openKey'], unique: true, sparse: true },
        { fields: ['job.dueAt'], sparse: true },
        FAIR_JOBS_INDEX,
        OUTBOX_INDEX,
      ],
    }),
    evaluationWatches: store.collection({
      name: 'evaluation_watches',
      indexes: [{ fields: ['organizationId'] }, { fields: ['collectionId'] }],
    }),
    indexMarks: store.collection({ name: 'index_marks', indexes: [] }),
    reembeddings: store.collection({
      name: 'reembeddings',
      indexes: [
        { fields: ['collectionId'] },
        { fields: ['openKey'], unique: true, sparse: true },
        { fields: ['job.dueAt'], sparse: true },
        FAIR_JOBS_INDEX,
        OUTBOX_INDEX,
      ],
    }),
    events: store.collection(EVENTS),
    eventHeads: store.collection(EVENT_HEADS),
    taskLeases: store.collection(TASK_LEASES),
  }
}
