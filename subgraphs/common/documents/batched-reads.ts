import type { DocumentCollection, StoredDocument } from '../ports/document-store.ts'

/** Keys of one read: what `$in` of the document store takes. */
const MAX_KEYS = 1_000

interface Batch<T> {
  readonly keys: Set<string>
  readonly found: Promise<ReadonlyMap<string, T>>
}

/**
 * Reads by key for one operation: what its fields ask for in one turn of the event loop is one read, in which each key
 * is once. Nothing is kept after it, so that the fields of a mutation read what the field before has changed.
 */
export class BatchedReads<T> {
  readonly #read: (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>
  #batch: Batch<T> | null = null

  /** `read` leaves out the keys that it does not find. */
  constructor(read: (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>) {
    this.#read = read
  }

  /** Null: there is nothing with this key. */
  async find(key: string): Promise<T | null> {
    this.#batch ??= this.#start()
    const { keys, found } = this.#batch
    keys.add(key)
    return (await found).get(key) ?? null
  }

  #start(): Batch<T> {
    const keys = new Set<string>()
    const found = new Promise<ReadonlyMap<string, T>>((resolve) => {
      // After the promises of this turn, so that all items of a list are in one batch.
      setImmediate(() => {
        this.#batch = null
        resolve(this.#readAll([...keys]))
      })
    })
    return { keys, found }
  }

  async #readAll(keys: readonly string[]): Promise<ReadonlyMap<string, T>> {
    if (keys.length <= MAX_KEYS) return this.#read(keys)
    const first = await this.#read(keys.slice(0, MAX_KEYS))
    return new Map([...first, ...(await this.#readAll(keys.slice(MAX_KEYS)))])
  }
}

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
