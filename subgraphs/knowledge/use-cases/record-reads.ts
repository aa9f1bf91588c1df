import { NotFound } from '../../common/errors.ts'
import { BatchedReads } from '../../common/link/batched-reads.ts'
import type { DocumentCollection, StoredDocument } from '../../common/ports/document-store.ts'
import type { CollectionRecord, DocumentRecord, FileRecord } from '../domain/records.ts'
import type { KnowledgeStore } from '../ports/knowledge-store.ts'

type Owned = StoredDocument & { readonly organizationId: string; readonly listed?: boolean }

/** The records that the fields of one operation point to. What a list of objects points to is read at once. */
export class RecordReads {
  readonly #files: BatchedReads<FileRecord>
  readonly #documents: BatchedReads<DocumentRecord>
  readonly #collections: BatchedReads<CollectionRecord>

  constructor(store: Pick<KnowledgeStore, 'files' | 'documents' | 'collections'>) {
    this.#files = byId(store.files)
    this.#documents = byId(store.documents)
    this.#collections = byId(store.collections)
  }

  /** @throws {NotFound} if the organization has no such file. */
  async getFile(organizationId: string, id: string): Promise<FileRecord> {
    return required('file', id, await this.findFile(organizationId, id))
  }

  async findFile(organizationId: string, id: string): Promise<FileRecord | null> {
    return ownedBy(organizationId, await this.#files.find(id))
  }

  /** Null also if the document or its collection is deleted. */
  async findDocument(organizationId: string, id: string): Promise<DocumentRecord | null> {
    const document = ownedBy(organizationId, await this.#documents.find(id))
    return document && (await this.findCollection(organizationId, document.collectionId)) ? document : null
  }

  /** @throws {NotFound} if the organization has no such collection, or it is deleted. */
  async getCollection(organizationId: string, id: string): Promise<CollectionRecord> {
    return required('collection', id, await this.findCollection(organizationId, id))
  }

  async findCollection(organizationId: string, id: string): Promise<CollectionRecord | null> {
    return ownedBy(organizationId, await this.#collections.find(id))
  }
}

function byId<T extends Owned>(records: DocumentCollection<T>): BatchedReads<T> {
  return new BatchedReads(async (ids) => {
    const found = await records.find({ _id: { $in: ids } }, { limit: ids.length })
    return new Map(found.map((record) => [record._id, record]))
  })
}

function ownedBy<T extends Owned>(organizationId: string, record: T | null): T | null {
  return record?.organizationId === organizationId && record.listed !== false ? record : null
}

function required<T>(kind: string, id: string, record: T | null): T {
  if (!record) throw new NotFound(kind, id)
  return record
}
