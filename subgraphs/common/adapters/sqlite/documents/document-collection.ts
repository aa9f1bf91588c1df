import { setImmediate as nextTick } from 'node:timers/promises'
import {
  type CollectionSpec,
  type DocumentCollection,
  type Filter,
  type FindOptions,
  QueryWouldScan,
  type StoredDocument,
  type Update,
} from '../../../ports/document-store.ts'
import { meets, organizationOf, type Test, toTests } from '../../documents/filter.ts'
import { type Access, chooseIndex, chooseKey, isLong, toCountSort } from '../../documents/index-choice.ts'
import { checkIndexed } from '../../documents/spec.ts'
import { encodeDocument, parseDocument, type StoredObject, toStored, withDates } from '../../documents/stored-value.ts'
import { toChanges, toSeed } from '../../documents/update.ts'
import type { DocumentWriter, Row, Target } from './document-writer.ts'
import { countSql, limited, ordered, type Sql, selectSql } from './query-sql.ts'

/** The parts of its store that a collection needs. */
export interface StoreAccess {
  /**
   * Reads documents. Without `aside` the read runs on the event loop: use this for some documents by key or in the
   * order of an index, or for their number. With `aside` the read runs in a thread, for queries that may pass over many
   * entries. `aside` is the organization, because threads serve organizations in round robin; empty: the service
   * itself.
   */
  read(sql: Sql, aside: string | null): Promise<readonly unknown[][]>
  /** Resolves after the commit. */
  write<Method extends keyof DocumentWriter>(
    method: Method,
    ...args: Parameters<DocumentWriter[Method]>
  ): Promise<ReturnType<DocumentWriter[Method]>>
}

/** The port's limit of a page, of `insertMissing` and of `deleteMany`. */
const MAX_DOCUMENTS = 1_000
/**
 * Time of parsing in one event-loop tick, after which a read waits for the next tick. Otherwise a loop of reads would
 * block all other requests, timers and aborts until its end.
 */
const MAX_PARSING_MS = 1
let parsingMs = 0

/**
 * A collection in a SQLite file. Reads run here or in a thread for scans, writes in the thread of the file's writer.
 */
export class SqliteCollection<T extends StoredDocument> implements DocumentCollection<T> {
  readonly spec: CollectionSpec
  readonly #store: StoreAccess

  constructor(spec: CollectionSpec, store: StoreAccess) {
    this.spec = spec
    this.#store = store
  }

  async findOne(filter: Filter): Promise<T | null> {
    const tests = toTests(filter)
    const access = this.#chooseAccess(tests, undefined, filter)
    const [found] = await this.#read(access, tests, 1, selectSql('doc', this.spec, access))
    return found ?? null
  }

  async find(filter: Filter, { sort = {}, limit }: FindOptions): Promise<readonly T[]> {
    checkCount(limit, 'the limit of a find')
    const directions = new Set(Object.values(sort))
    if (directions.size > 1) throw new TypeError('a sort goes one way')
    const [direction = 1] = directions
    const tests = toTests(filter)
    const access = this.#chooseAccess(tests, Object.keys(sort), { filter, sort })
    return this.#read(access, tests, limit, ordered(selectSql('doc', this.spec, access), access, direction))
  }

  async countDocuments(filter: Filter, { limit }: { readonly limit?: number } = {}): Promise<number> {
    const tests = toTests(filter)
    const access = this.#chooseAccess(tests, toCountSort(tests, limit), filter)
    if (access.judged.length > 0) {
      const { length } = await this.#read(access, tests, MAX_DOCUMENTS, selectSql('doc', this.spec, access))
      return Math.min(length, limit ?? length)
    }
    const isShort = limit !== undefined && !isLong(access, limit)
    const [row] = await this.#store.read(countSql(this.spec, access, limit), isShort ? null : organizationOf(tests))
    return Number(row?.[0])
  }

  async insertOne(document: T): Promise<void> {
    const [id, text] = this.#toRow(document)
    await this.#store.write('insert', this.spec, id, text)
  }

  async insertMissing(documents: readonly T[]): Promise<number> {
    if (documents.length === 0) return 0
    checkCount(documents.length, 'the number of documents')
    const rows = documents.map((document) => this.#toRow(document))
    return this.#store.write('insertMissing', this.spec, rows)
  }

  async findOneAndUpdate(filter: Filter, update: Update, { upsert = false }: { readonly upsert?: boolean } = {}): Promise<T | null> {
    const tests = toTests(filter)
    const target = this.#chooseTarget(tests, filter)
    const changes = toChanges(update)
    return this.#decoded(await this.#store.write('update', this.spec, target, changes, upsert ? toSeed(tests) : null))
  }

  async updateOne(filter: Filter, update: Update): Promise<boolean> {
    const target = this.#chooseTarget(toTests(filter), filter)
    const changes = toChanges(update)
    return this.#store.write('change', this.spec, target, changes)
  }

  async findOneAndDelete(filter: Filter): Promise<T | null> {
    const target = this.#chooseTarget(toTests(filter), filter)
    return this.#decoded(await this.#store.write('deleteOne', this.spec, target))
  }

  async deleteMany(filter: Filter): Promise<number> {
    const access = this.#chooseAccess(toTests(filter), undefined, filter)
    const sql = limited(selectSql('id, doc', this.spec, access), MAX_DOCUMENTS)
    return this.#store.write('deleteMany', this.spec, { sql, judged: access.judged })
  }

  #chooseAccess(tests: readonly Test[], sort: readonly string[] | undefined, query: object): Access {
    const access = chooseIndex(this.spec, tests, sort)
    if (!access) throw new QueryWouldScan(this.spec.name, JSON.stringify(query))
    return access
  }

  #chooseTarget(tests: readonly Test[], filter: Filter): Target {
    const access = chooseKey(this.spec, tests)
    if (!access) throw new QueryWouldScan(this.spec.name, `a write by ${JSON.stringify(filter)}, which fixes no unique key`)
    return { sql: selectSql('id, doc', this.spec, access), judged: access.judged }
  }

  #toRow(document: T): Row {
    const stored = toStored(document, this.spec.name) as StoredObject
    const id = stored._id
    if (typeof id !== 'string' || id === '') throw new TypeError(`a document of ${this.spec.name} has no string _id`)
    checkIndexed(this.spec, stored)
    return [id, encodeDocument(stored)]
  }

  /** Returns the first `limit` documents of `sql` that pass the tests. */
  async #read(access: Access, tests: readonly Test[], limit: number, sql: Sql): Promise<readonly T[]> {
    // `judged` documents were found by a unique key, so there are at most 1,000 even without a limit.
    const limitedSql = access.judged.length > 0 ? sql : limited(sql, limit)
    const isAside = isLong(access, access.judged.length > 0 ? countKeys(access.served) : limit)
    const rows = await this.#store.read(limitedSql, isAside ? organizationOf(tests) : null)
    const begunMs = performance.now()
    const documents = this.#toDocuments(rows, access, tests).slice(0, limit)
    parsingMs += performance.now() - begunMs
    if (parsingMs >= MAX_PARSING_MS) {
      parsingMs = 0
      await nextTick()
    }
    return documents
  }

  #toDocuments(rows: readonly unknown[][], access: Access, tests: readonly Test[]): readonly T[] {
    const documents: T[] = []
    for (const [text] of rows) {
      const stored = parseDocument(text as string)
      if (meets(stored, tests)) documents.push(withDates(stored) as T)
      // In an index, true is 1 and a date is its milliseconds. Documents of another type could be found instead of the
      // right ones, or between them.
      else if (!meets(stored, access.served)) throw new TypeError(`an indexed field of ${this.spec.name} holds values of several types`)
    }
    return documents
  }

  #decoded(text: string | null): T | null {
    return text === null ? null : (withDates(parseDocument(text)) as T)
  }
}

/** Returns the most documents that a unique key finds: one, or one for each value of a list. */
function countKeys(served: readonly Test[]): number {
  return Math.max(1, ...served.map((test) => (test.operator === 'in' ? test.values.length : 1)))
}

/** @throws {RangeError} the count is out of range: a defect of the caller */
function checkCount(count: number, what: string): void {
  if (!Number.isInteger(count) || count < 1 || count > MAX_DOCUMENTS) {
    throw new RangeError(`${what} is ${count}, not 1 to ${MAX_DOCUMENTS}`)
  }
}
