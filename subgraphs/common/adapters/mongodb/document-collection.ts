import { type ClientSession, type Collection, MongoBulkWriteError, type OptionalUnlessRequiredId, type WithId } from 'mongodb'
import { ServiceUnavailable } from '../../errors.ts'
import {
  type CollectionSpec,
  type DocumentCollection,
  DuplicateKey,
  type Filter,
  type FindOptions,
  QueryWouldScan,
  type StoredDocument,
  type Update,
} from '../../ports/document-store.ts'
import { organizationOf, type Test, toTests } from '../documents/filter.ts'
import { type Access, chooseIndex, chooseKey, isLong, toCountSort } from '../documents/index-choice.ts'
import { checkIndexed } from '../documents/spec.ts'
import { type StoredObject, toStored } from '../documents/stored-value.ts'
import { toSeed } from '../documents/update.ts'
import { toBson, toBsonUpdate } from './bson.ts'
import { OPERATION_LIMIT_MS } from './connection.ts'
import { isDuplicateKey, translated, wasNotSent } from './failures.ts'
import { toHint } from './indexes.ts'
import { LONG_READ_LIMIT_MS, type LongReads } from './long-reads.ts'
import type { ResilientClient } from './resilient-client.ts'

/** What a collection needs from its store. */
interface StoreAccess {
  /** Begins the message of a failure: `The document store`. */
  readonly what: string
  readonly client: Pick<ResilientClient, 'withTimeout'>
  readonly longReads: LongReads
  /** Of all reads. Undefined: each shows what is there. */
  readonly session?: ClientSession | undefined
  /** Resolves when the indexes exist. */
  ready(): Promise<void>
}

/** The port's limit of a page, of `insertMissing` and of `deleteMany`. */
const MAX_DOCUMENTS = 1_000
/** How often `deleteMany` starts again because others have deleted or changed everything that it found. */
const MAX_DELETE_ROUNDS = 5

/** Queries are checked as on SQLite, so that one without an index fails on every server, and in the tests. */
export class MongoCollection<T extends StoredDocument> implements DocumentCollection<T> {
  readonly spec: CollectionSpec
  readonly #documents: Collection<StoredDocument>
  readonly #store: StoreAccess

  constructor(spec: CollectionSpec, documents: Collection<StoredDocument>, store: StoreAccess) {
    this.spec = spec
    this.#documents = documents
    this.#store = store
  }

  async findOne(filter: Filter): Promise<T | null> {
    const tests = toTests(filter)
    const access = this.#chooseAccess(tests, undefined, filter)
    const hint = toHint(access.index)
    return this.#read(isLong(access, 1), tests, (limits) => this.#documents.findOne(filter, { hint, ...limits }))
  }

  async find(filter: Filter, { sort = {}, limit }: FindOptions): Promise<readonly T[]> {
    checkCount(limit, 'the limit of a find')
    const directions = new Set(Object.values(sort))
    if (directions.size > 1) throw new TypeError('a sort goes one way')
    const [direction = 1] = directions
    const tests = toTests(filter)
    const access = this.#chooseAccess(tests, Object.keys(sort), { filter, sort })
    const order = Object.fromEntries(remainingOrder(access, tests).map((path) => [path, direction]))
    // The whole page in one batch, so that no cursor stays open on the server.
    const options = { hint: toHint(access.index), sort: order, limit, batchSize: limit + 1 }
    return this.#read(isLong(access, limit), tests, (limits) => this.#documents.find(filter, { ...options, ...limits }).toArray())
  }

  async countDocuments(filter: Filter, options: { readonly limit?: number } = {}): Promise<number> {
    const tests = toTests(filter)
    const access = this.#chooseAccess(tests, toCountSort(tests, options.limit), filter)
    const hint = toHint(access.index)
    const mayBeSlow = isLong(access, options.limit ?? Number.POSITIVE_INFINITY)
    return this.#read(mayBeSlow, tests, (limits) => this.#documents.countDocuments(filter, { ...options, hint, ...limits }))
  }

  async insertOne(document: T): Promise<void> {
    const encoded = this.#encoded(document)
    await this.#run(() => this.#documents.insertOne(encoded))
  }

  async insertMissing(documents: readonly T[]): Promise<number> {
    if (documents.length === 0) return 0
    checkCount(documents.length, 'the number of documents')
    const encoded = documents.map((document) => this.#encoded(document))
    return this.#run(async () => {
      try {
        return (await this.#documents.insertMany(encoded, { ordered: false })).insertedCount
      } catch (error) {
        if (!(error instanceof MongoBulkWriteError) || !isDuplicateKey(error) || error.result.getWriteConcernError()) throw error
        return documents.length - (await this.#countMissed(error))
      }
    })
  }

  async findOneAndUpdate(filter: Filter, update: Update, { upsert = false }: { readonly upsert?: boolean } = {}): Promise<T | null> {
    const tests = toTests(filter)
    this.#checkKey(tests, filter)
    const changes = toBsonUpdate(update)
    if (Object.keys(changes).length === 0) throw new TypeError('an update has at least one change')
    if (upsert) this.#checkInserted(tests, update)
    const run = () => this.#documents.findOneAndUpdate(filter, changes, { upsert, returnDocument: 'after' })
    return this.#run(async () => {
      try {
        return await run()
      } catch (error) {
        // Another call has inserted the document meanwhile. Now it exists, and either meets the filter or does not.
        if (upsert && isDuplicateKey(error)) return run()
        throw error
      }
    })
  }

  async updateOne(filter: Filter, update: Update): Promise<boolean> {
    this.#checkKey(toTests(filter), filter)
    const changes = toBsonUpdate(update)
    if (Object.keys(changes).length === 0) throw new TypeError('an update has at least one change')
    return this.#run(async () => (await this.#documents.updateOne(filter, changes)).matchedCount === 1)
  }

  async findOneAndDelete(filter: Filter): Promise<T | null> {
    this.#checkKey(toTests(filter), filter)
    return this.#run(() => this.#documents.findOneAndDelete(filter))
  }

  async deleteMany(filter: Filter): Promise<number> {
    const access = this.#chooseAccess(toTests(filter), undefined, filter)
    const options = { hint: toHint(access.index), projection: { _id: 1 }, limit: MAX_DOCUMENTS, batchSize: MAX_DOCUMENTS + 1 }
    return this.#run(async () => {
      for (let round = 0; round < MAX_DELETE_ROUNDS; round++) {
        const found = await this.#documents.find(filter, options).toArray()
        if (found.length === 0) return 0
        const { deletedCount } = await this.#documents.deleteMany({ $and: [{ _id: { $in: found.map(({ _id }) => _id) } }, filter] })
        if (deletedCount > 0) return deletedCount
      }
      throw new ServiceUnavailable(this.#store.what)
    })
  }

  /** As `#run`; organizations take turns with their long reads. */
  async #read<R>(
    isLongRead: boolean,
    tests: readonly Test[],
    operation: (limits: { readonly maxTimeMS?: number; readonly session?: ClientSession }) => Promise<R>,
  ) {
    const { session } = this.#store
    const at = session ? { session } : {}
    if (!isLongRead) return this.#run(() => operation(at))
    // Making indexes may take longer than a turn may be waited for.
    await this.#store.ready()
    const limits = { ...at, maxTimeMS: LONG_READ_LIMIT_MS }
    return this.#store.longReads.run(organizationOf(tests), () => this.#run(() => operation(limits)))
  }

  /** The driver returns what was stored: Dates, and whole numbers even if MongoDB holds them in 64 bits. */
  async #run<R>(
    operation: () => Promise<R>,
  ): Promise<R extends WithId<StoredDocument> | null ? T | null : R extends WithId<StoredDocument>[] ? readonly T[] : R> {
    await this.#store.ready()
    try {
      const repeated = () => operation().catch((error) => (wasNotSent(error) ? operation() : Promise.reject(error)))
      // TypeScript does not resolve a conditional type while `R` is open.
      return (await this.#store.client.withTimeout(repeated, OPERATION_LIMIT_MS)) as never
    } catch (error) {
      throw translated(error, this.spec.name, this.#store.what)
    }
  }

  #chooseAccess(tests: readonly Test[], sort: readonly string[] | undefined, query: object): Access {
    const access = chooseIndex(this.spec, tests, sort)
    if (!access) throw new QueryWouldScan(this.spec.name, JSON.stringify(query))
    return access
  }

  #checkKey(tests: readonly Test[], filter: Filter): void {
    if (!chooseKey(this.spec, tests))
      throw new QueryWouldScan(this.spec.name, `a write by ${JSON.stringify(filter)}, which fixes no unique key`)
  }

  /** Otherwise MongoDB would create an `_id` of its own kind. */
  #checkInserted(tests: readonly Test[], update: Update): void {
    const id = update.$setOnInsert?._id ?? toSeed(tests)._id
    if (typeof id !== 'string' || id === '') throw new TypeError(`an upsert into ${this.spec.name} names no _id`)
  }

  #encoded(document: T): OptionalUnlessRequiredId<StoredDocument> {
    const stored = toStored(document, this.spec.name) as StoredObject
    if (typeof stored._id !== 'string' || stored._id === '') throw new TypeError(`a document of ${this.spec.name} has no string _id`)
    checkIndexed(this.spec, stored)
    return toBson(stored) as OptionalUnlessRequiredId<StoredDocument>
  }

  /**
   * Counts the documents of a batch that existed already. Not every server says which key was taken: if the `_id` is
   * not there, it was another unique key.
   */
  async #countMissed(error: MongoBulkWriteError): Promise<number> {
    const failures = [error.writeErrors].flat()
    if (failures.some(({ code }) => code !== error.code)) throw error
    const ids = [...new Set(failures.map((failure) => failure.getOperation()._id as string))]
    const there = await this.#documents.find({ _id: { $in: ids } }, { projection: { _id: 1 }, batchSize: MAX_DOCUMENTS + 1 }).toArray()
    if (there.length < ids.length) throw new DuplicateKey(this.spec.name, error)
    return failures.length
  }
}

/**
 * A unique index does not contain `_id`, so MongoDB would sort by it in memory. No two documents are equal in such an
 * index anyway.
 */
function remainingOrder({ index, order }: Access, tests: readonly Test[]): readonly string[] {
  const isFixed = (path: string) => tests.some((test) => test.path === path && test.operator === 'eq')
  const isTotal = index.unique && index.fields.every((path) => path !== '_id' && (order.includes(path) || isFixed(path)))
  const needed = isTotal ? order.filter((path) => path !== '_id') : order
  return needed.length > 0 ? needed : ['_id']
}

/** @throws {RangeError} the count is out of range: a defect of the caller */
function checkCount(count: number, what: string): void {
  if (!Number.isInteger(count) || count < 1 || count > MAX_DOCUMENTS) {
    throw new RangeError(`${what} is ${count}, not 1 to ${MAX_DOCUMENTS}`)
  }
}
