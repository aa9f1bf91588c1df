import type { DocumentCollection, StoredDocument } from '../ports/document-store.ts'

/** Keys of one read: the limit of `$in` in the document store. */
const MAX_KEYS = 1_000

interface Batch<T> {
  readonly keys: Set<string>
  readonly found: Promise<ReadonlyMap<string, T>>
}

/**
 * Reads by key for one operation. All keys that its fields request in one event-loop tick are one read, which contains
 * each key once. Results are not cached, so that the fields of a mutation read what the field before has changed.
 */
export class BatchedReads<T> {
  readonly #read: (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>
  #batch: Batch<T> | null = null

  /** `read` omits the keys that it does not find. */
  constructor(read: (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>) {
    this.#read = read
  }

  /** Returns the value of the key; null: there is none. */
  async find(key: string): Promise<T | null> {
    this.#batch ??= this.#start()
    const { keys, found } = this.#batch
    keys.add(key)
    return (await found).get(key) ?? null
  }

  #start(): Batch<T> {
    const keys = new Set<string>()
    const found = new Promise<ReadonlyMap<string, T>>((resolve) => {
      // The read starts after the promises of this tick, so that all items of a list are in one batch.
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

/** The records of one collection that the fields of one operation refer to. Each list of them is one read. */
export class OwnedReads<T extends Owned> {
  readonly #reads: BatchedReads<T>

  constructor(records: Pick<DocumentCollection<T>, 'find'>) {
    this.#reads = new BatchedReads(async (ids) => {
      const found = await records.find({ _id: { $in: ids } }, { limit: ids.length })
      return new Map(found.map((record) => [record._id, record]))
    })
  }

  /** Returns the record; null: the organization has no such record, or it is deleted. */
  async find(organizationId: string, id: string): Promise<T | null> {
    const record = await this.#reads.find(id)
    return record?.organizationId === organizationId && record.listed !== false ? record : null
  }
}
