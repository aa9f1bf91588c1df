import { OwnedReads } from '../../common/documents/batched-reads.ts'
import { NotFound } from '../../common/errors.ts'
import type { CollectionRecord, DocumentRecord, FileRecord } from '../domain/records.ts'
import type { KnowledgeStore } from '../ports/knowledge-store.ts'

/** Batches and caches record reads of one GraphQL operation. The records that a list refers to are read together. */
export class RecordReads {
  readonly #files: OwnedReads<FileRecord>
  readonly #documents: OwnedReads<DocumentRecord>
  readonly #collections: OwnedReads<CollectionRecord>

  constructor(store: Pick<KnowledgeStore, 'files' | 'documents' | 'collections'>) {
    this.#files = new OwnedReads(store.files)
    this.#documents = new OwnedReads(store.documents)
    this.#collections = new OwnedReads(store.collections)
  }

  /** @throws {NotFound} if the organization has no such file. */
  async getFile(organizationId: string, id: string): Promise<FileRecord> {
    return required('file', id, await this.findFile(organizationId, id))
  }

  findFile(organizationId: string, id: string): Promise<FileRecord | null> {
    return this.#files.find(organizationId, id)
  }

  /** Returns null if the document or its collection is deleted. */
  async findDocument(organizationId: string, id: string): Promise<DocumentRecord | null> {
    const document = await this.#documents.find(organizationId, id)
    return document && (await this.findCollection(organizationId, document.collectionId)) ? document : null
  }

  /** @throws {NotFound} if the organization has no such collection, or it is deleted. */
  async getCollection(organizationId: string, id: string): Promise<CollectionRecord> {
    return required('collection', id, await this.findCollection(organizationId, id))
  }

  findCollection(organizationId: string, id: string): Promise<CollectionRecord | null> {
    return this.#collections.find(organizationId, id)
  }
}

function required<T>(kind: string, id: string, record: T | null): T {
  if (!record) throw new NotFound(kind, id)
  return record
}
