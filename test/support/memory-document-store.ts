import { meets, type Test, toTests } from '../../subgraphs/common/adapters/documents/filter.ts'
import { chooseIndex, chooseKey, toCountSort } from '../../subgraphs/common/adapters/documents/index-choice.ts'
import { checkIndexed } from '../../subgraphs/common/adapters/documents/spec.ts'
import { type Stored, type StoredObject, toStored, withDates } from '../../subgraphs/common/adapters/documents/stored-value.ts'
import { applyChanges, toChanges, toSeed } from '../../subgraphs/common/adapters/documents/update.ts'
import { ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import {
  type CollectionSpec,
  type DocumentCollection,
  type DocumentStore,
  DuplicateKey,
  type Filter,
  type FindOptions,
  QueryWouldScan,
  type StoredDocument,
  type Update,
} from '../../subgraphs/common/ports/document-store.ts'

/** The port's limit for a page and for a bulk write. */
const MAX_DOCUMENTS = 1_000

/**
 * A document store in memory for unit tests. It is deterministic, and judges filters, indexes and updates with the code
 * of the SQLite adapter. It can make a call fail before the call takes effect or after it, as if the answer was lost.
 * Its documents outlive the objects that use it. To simulate a crash, drop those objects and create new ones.
 */
export class MemoryDocumentStore implements DocumentStore {
  readonly #collections = new Map<string, MemoryCollection>()
  /** The number of calls until the fault, and whether the failing call takes effect. */
  #fault: { countdown: number; effect: 'failed' | 'lost answer' } | undefined

  /**
   * Makes the `nth` call from now on fail; 1 is the next call. With `lost answer` the call takes effect first. Replaces
   * a pending fault.
   */
  failCall(nth: number, effect: 'failed' | 'lost answer'): void {
    this.#fault = { countdown: nth, effect }
  }

  healFaults(): void {
    this.#fault = undefined
  }

  collection<T extends StoredDocument>(spec: CollectionSpec): DocumentCollection<T> {
    let collection = this.#collections.get(spec.name)
    if (!collection) {
      collection = new MemoryCollection(spec, (effect) => this.#call(effect))
      this.#collections.set(spec.name, collection)
    }
    return collection as unknown as DocumentCollection<T>
  }

  async ping(signal: AbortSignal): Promise<Date> {
    signal.throwIfAborted()
    return new Date()
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async #call<R>(effect: () => R): Promise<R> {
    // Yield to the microtask queue before the effect, so that callers interleave as on a real store.
    await undefined
    const fault = this.#fault && --this.#fault.countdown === 0 ? this.#fault.effect : undefined
    if (!fault) return effect()
    this.#fault = undefined
    if (fault === 'lost answer') effect()
    throw new ServiceUnavailable('The document store')
  }
}

class MemoryCollection implements DocumentCollection<StoredDocument> {
  readonly #spec: CollectionSpec
  readonly #call: <R>(effect: () => R) => Promise<R>
  readonly #documents = new Map<string, StoredObject>()

  constructor(spec: CollectionSpec, call: <R>(effect: () => R) => Promise<R>) {
    this.#spec = spec
    this.#call = call
  }

  findOne(filter: Filter) {
    return this.#call(() => copyOf(this.#find(filter)[0]))
  }

  find(filter: Filter, { sort = {}, limit }: FindOptions) {
    return this.#call(() => {
      checkCount(limit)
      const directions = new Set(Object.values(sort))
      if (directions.size > 1) throw new TypeError('a sort goes one way')
      const fields = [...Object.keys(sort), '_id']
      const direction = directions.has(-1) ? -1 : 1
      const found = [...this.#find(filter, Object.keys(sort))].sort((a, b) => direction * compareBy(fields, a, b))
      return found.slice(0, limit).map((document) => copyOf(document)!)
    })
  }

  countDocuments(filter: Filter, { limit }: { readonly limit?: number } = {}) {
    return this.#call(() => {
      const { length } = this.#find(filter, toCountSort(toTests(filter), limit))
      return Math.min(length, limit ?? length)
    })
  }

  insertOne(document: StoredDocument) {
    return this.#call(() => this.#insert(toStored(document, this.#spec.name) as StoredObject))
  }

  insertMissing(documents: readonly StoredDocument[]) {
    return this.#call(() => {
      if (documents.length > 0) checkCount(documents.length)
      let inserted = 0
      let duplicate: unknown
      for (const document of documents) {
        if (this.#documents.has(document._id)) continue
        try {
          this.#insert(toStored(document, this.#spec.name) as StoredObject)
          inserted++
        } catch (error) {
          if (!(error instanceof DuplicateKey)) throw error
          duplicate = error
        }
      }
      if (duplicate) throw duplicate
      return inserted
    })
  }

  findOneAndUpdate(filter: Filter, update: Update, { upsert = false }: { readonly upsert?: boolean } = {}) {
    return this.#call(() => {
      const tests = toTests(filter)
      const changes = toChanges(update)
      const found = this.#findByKey(filter, tests)
      const meeting = found && meets(found, tests) ? found : undefined
      if (!meeting && !upsert) return null
      if (found && !meeting) throw new DuplicateKey(this.#spec.name)
      const document = meeting ? copy(meeting) : toSeed(tests)
      applyChanges(document, changes, !meeting)
      if (meeting) this.#put(document)
      else this.#insert(document)
      return copyOf(document)
    })
  }

  async updateOne(filter: Filter, update: Update) {
    return (await this.findOneAndUpdate(filter, update)) !== null
  }

  findOneAndDelete(filter: Filter) {
    return this.#call(() => {
      const tests = toTests(filter)
      const found = this.#findByKey(filter, tests)
      if (!found || !meets(found, tests)) return null
      this.#documents.delete(found._id as string)
      return copyOf(found)
    })
  }

  deleteMany(filter: Filter) {
    return this.#call(() => {
      const found = this.#find(filter).slice(0, MAX_DOCUMENTS)
      for (const document of found) this.#documents.delete(document._id as string)
      return found.length
    })
  }

  #find(filter: Filter, sort?: readonly string[]): readonly StoredObject[] {
    const tests = toTests(filter)
    if (!chooseIndex(this.#spec, tests, sort)) throw new QueryWouldScan(this.#spec.name, JSON.stringify({ filter, sort }))
    return this.#candidates(tests).filter((document) => meets(document, tests))
  }

  /** Returns the document with the key that the filter fixes, even if it does not match the rest of the filter. */
  #findByKey(filter: Filter, tests: readonly Test[]): StoredObject | undefined {
    const access = chooseKey(this.#spec, tests)
    if (!access) throw new QueryWouldScan(this.#spec.name, `a write by ${JSON.stringify(filter)}, which fixes no unique key`)
    return this.#candidates(access.served).find((document) => meets(document, access.served))
  }

  #candidates(tests: readonly Test[]): readonly StoredObject[] {
    const byId = tests.find((test) => test.path === '_id' && test.operator === 'eq')
    if (!byId || !('value' in byId)) return [...this.#documents.values()]
    const document = this.#documents.get(byId.value as string)
    return document ? [document] : []
  }

  #insert(document: StoredObject): void {
    if (typeof document._id !== 'string' || document._id === '') throw new TypeError(`a document of ${this.#spec.name} has no string _id`)
    if (this.#documents.has(document._id)) throw new DuplicateKey(this.#spec.name)
    this.#put(document)
  }

  #put(document: StoredObject): void {
    checkIndexed(this.#spec, document)
    for (const { fields, unique, sparse } of this.#spec.indexes) {
      if (!unique || (sparse && at(document, fields[0]!) === undefined)) continue
      const key = JSON.stringify(fields.map((field) => at(document, field)))
      for (const other of this.#documents.values())
        if (other._id !== document._id && JSON.stringify(fields.map((field) => at(other, field))) === key)
          throw new DuplicateKey(this.#spec.name)
    }
    this.#documents.set(document._id as string, copy(document))
  }
}

function checkCount(count: number): void {
  if (!Number.isInteger(count) || count < 1 || count > MAX_DOCUMENTS) throw new RangeError(`${count} is not 1 to ${MAX_DOCUMENTS}`)
}

function copyOf(document: StoredObject | undefined): StoredDocument | null {
  return document ? (withDates(copy(document)) as StoredDocument) : null
}

function at(document: StoredObject, path: string): Stored | undefined {
  return path.split('.').reduce<Stored | undefined>((value, field) => (value as StoredObject | undefined)?.[field], document)
}

/** Compares by UTF-8 bytes, time or number. Absent values come first. */
function compareBy(fields: readonly string[], a: StoredObject, b: StoredObject): number {
  for (const field of fields) {
    const [left, right] = [sortable(at(a, field)), sortable(at(b, field))]
    const order =
      typeof left === 'string' && typeof right === 'string'
        ? Buffer.compare(Buffer.from(left), Buffer.from(right))
        : Number(left) - Number(right)
    if (order !== 0) return order
  }
  return 0
}

function sortable(value: Stored | undefined): string | number {
  if (typeof value === 'string' || typeof value === 'number') return value
  return value && typeof value === 'object' && '$date' in value ? (value.$date as number) : Number(value ?? Number.NEGATIVE_INFINITY)
}

/** Copies the values that documents can hold, faster than `structuredClone`. */
function copy<T extends Stored>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copy) as T
  const copied: StoredObject = {}
  for (const field in value) copied[field] = copy((value as StoredObject)[field]!)
  return copied as T
}
