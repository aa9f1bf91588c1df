import { BatchedReads } from '../link/batched-reads.ts'
import type { DocumentCollection, StoredDocument } from '../ports/document-store.ts'

type Owned = StoredDocument & { readonly organizationId: string; readonly listed?: boolean }

/** The records of one collection that the fields of one operation point to, each list of them in one read. */
export class OwnedReads<T extends Owned> {
  readonly #reads: BatchedReads<T>

  constructor(records: Pick<DocumentCollection<T>, 'find'>) {
    this.#reads = new BatchedReads(async (ids) => {
      const found = await records.find({ _id: { $in: ids } }, { limit: ids.length })
      return new Map(found.map((record) => [record._id, record]))
    })
  }

  /** Null if the organization has no such record, or it is deleted. */
  async find(organizationId: string, id: string): Promise<T | null> {
    const record = await this.#reads.find(id)
    return record?.organizationId === organizationId && record.listed !== false ? record : null
  }
}
