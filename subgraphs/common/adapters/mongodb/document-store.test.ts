import { Long, MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { onEngine } from '../../../../test/support/engines/engine-url.ts'
import { newDatabaseName } from '../../../../test/support/engines/mongodb.ts'
import { openMongoDocumentStore } from '../../../../test/support/engines/open-mongodb.ts'
import { type CollectionSpec, type DocumentStore, DuplicateKey, type StoredDocument } from '../../ports/document-store.ts'
import { silentLog } from '../../process/log.ts'

interface Item extends StoredDocument {
  readonly code?: string
  readonly n?: number
}

await onEngine('KIS_TEST_MONGODB_URL', 'MongoDB document store', (url) => {
  describe('MongoDB document store', () => {
    const database = newDatabaseName()
    const client = new MongoClient(url)
    const db = client.db(database)
    let store: DocumentStore
    beforeAll(async () => {
      store = await openMongoDocumentStore({ url, database, log: silentLog })
    })
    afterAll(async () => {
      await store[Symbol.asyncDispose]()
      await db.dropDatabase()
      await client.close()
    })

    it('creates indexes in the order of every page, and sparse ones without documents that lack the field', async () => {
      const spec: CollectionSpec = {
        name: 'indexed',
        indexes: [
          { fields: ['org', 'at'] },
          { fields: ['org', 'code'], unique: true },
          { fields: ['key'], unique: true, sparse: true },
          { fields: ['job.dueAt'], sparse: true },
        ],
      }
      expect(await store.collection(spec).find({ org: 'x' }, { sort: { at: 1 }, limit: 10 })).toEqual([])
      const indexes = await db.collection('indexed').indexes()
      expect(Object.fromEntries(indexes.map(({ name, v, ns, ...rest }) => [name, rest]))).toEqual({
        _id_: { key: { _id: 1 } },
        org_1_at_1__id_1: { key: { org: 1, at: 1, _id: 1 } },
        org_1_code_1: { key: { org: 1, code: 1 }, unique: true },
        key_1: { key: { key: 1 }, unique: true, sparse: true },
        'job.dueAt_1__id_1': { key: { 'job.dueAt': 1, _id: 1 }, partialFilterExpression: { 'job.dueAt': { $exists: true } } },
      })
    })

    it('creates the same indexes, however many processes start at once', async () => {
      const spec: CollectionSpec = { name: 'at_once', indexes: [{ fields: ['code'], unique: true }, { fields: ['n'] }] }
      const stores = await Promise.all(Array.from({ length: 5 }, () => openMongoDocumentStore({ url, database, log: silentLog })))
      await Promise.all(stores.map((each, i) => each.collection<Item>(spec).insertOne({ _id: `${i}`, code: `${i}`, n: i })))
      expect(await db.collection('at_once').indexes()).toHaveLength(3)
      await Promise.all(stores.map((each) => each[Symbol.asyncDispose]()))
    })

    it('stores whole numbers of 64 bits, exact up to the largest safe one', async () => {
      const items = store.collection<Item>({ name: 'numbers', indexes: [] })
      await items.insertOne({ _id: 'a', n: 2 ** 31 - 1 })
      for (const by of [1, Number.MAX_SAFE_INTEGER - 2 ** 31 - 1, 1]) await items.findOneAndUpdate({ _id: 'a' }, { $inc: { n: by } })
      expect(await items.findOne({ _id: 'a', n: { $gte: Number.MAX_SAFE_INTEGER } })).toEqual({ _id: 'a', n: Number.MAX_SAFE_INTEGER })
      expect((await db.collection('numbers').findOne({}, { promoteLongs: false }))?.n).toEqual(Long.fromNumber(Number.MAX_SAFE_INTEGER))
    })

    it('stores all documents of a batch except one whose unique key is taken, and reports it', async () => {
      const items = store.collection<Item>({ name: 'batches', indexes: [{ fields: ['code'], unique: true }] })
      await items.insertOne({ _id: 'a', code: 'a' })
      const batch = ['a', 'b', 'c'].map((_id) => ({ _id, code: _id === 'c' ? 'a' : _id }))
      await expect(items.insertMissing(batch)).rejects.toThrow(DuplicateKey)
      expect((await items.find({}, { limit: 10 })).map(({ _id }) => _id)).toEqual(['a', 'b'])
    })

    it('creates one document from many concurrent upserts, none of which fails', async () => {
      const items = store.collection<Item>({ name: 'upserts', indexes: [{ fields: ['code'], unique: true }] })
      const upsert = (_id: string) => items.findOneAndUpdate({ code: 'c' }, { $inc: { n: 1 }, $setOnInsert: { _id } }, { upsert: true })
      await Promise.all(Array.from({ length: 50 }, (_, i) => upsert(`${i}`)))
      expect(await items.find({}, { limit: 10 })).toMatchObject([{ code: 'c', n: 50 }])
    })

    it('reads in turns, so that long reads of one organization do not keep another waiting', async () => {
      const items = store.collection<Item & { readonly organizationId: string }>({
        name: 'turns',
        indexes: [{ fields: ['organizationId'] }],
      })
      const documents = (organizationId: string) =>
        Array.from({ length: 20 }, (_, i) => ({ _id: `${organizationId} ${i}`, organizationId }))
      for (const organizationId of ['org_a', 'org_b']) await items.insertMissing(documents(organizationId))
      const read = (organizationId: string) => items.find({ organizationId }, { limit: 1_000 })
      let done = 0
      const many = Array.from({ length: 200 }, () => read('org_a').then(() => done++))
      expect(await read('org_b')).toHaveLength(20)
      expect(done).toBeLessThan(100)
      await Promise.all(many)
    })

    it('has no IDs that MongoDB generates, and no index that it would read otherwise than SQLite', async () => {
      const items = store.collection<Item>({ name: 'ids', indexes: [{ fields: ['code'], unique: true }] })
      await expect(items.findOneAndUpdate({ code: 'x' }, { $inc: { n: 1 } }, { upsert: true })).rejects.toThrow(/no _id/)
      const sparse = { fields: ['code', 'n'], unique: true, sparse: true }
      expect(() => store.collection<Item>({ name: 'sparse', indexes: [sparse] })).toThrow(/several fields/)
    })
  })
})
