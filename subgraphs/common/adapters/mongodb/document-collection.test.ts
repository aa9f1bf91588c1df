import { type Collection, MongoBulkWriteError, MongoNetworkError, MongoServerError, MongoWriteConcernError } from 'mongodb'
import { describe, expect, it } from 'vitest'
import { type CollectionSpec, DuplicateKey, type Filter, type StoredDocument } from '../../ports/document-store.ts'
import { MongoCollection } from './document-collection.ts'
import { LongReads } from './long-reads.ts'

/**
 * Behavior that the fake of the engine tests cannot show: the fake neither uses indexes nor loses races, and has no
 * majority to wait for.
 */

const SPEC: CollectionSpec = {
  name: 'items',
  indexes: [
    { fields: ['org', 'code'], unique: true },
    { fields: ['org', 'at'] },
    { fields: ['job.dueAt'], sparse: true },
    { fields: ['organizationId'] },
    { fields: ['organizationId', 'at', 'code'] },
  ],
}

/** Returns a collection whose driver responds by `answer`, and the recorded calls. */
function collectionOn(respond: (call: number) => unknown) {
  const calls: unknown[][] = []
  const invoke = (...args: unknown[]) => {
    calls.push(args)
    const result = respond(calls.length)
    if (result instanceof Error) throw result
    return result
  }
  const driver = {
    find: (...args: unknown[]) => ({ toArray: async () => invoke(...args) }),
    countDocuments: async (...args: unknown[]) => invoke(...args),
    findOneAndUpdate: async (...args: unknown[]) => invoke(...args),
    insertOne: async (...args: unknown[]) => invoke(...args),
  }
  const documents = driver as unknown as Collection<StoredDocument>
  return {
    calls,
    items: new MongoCollection(SPEC, documents, {
      what: 'The document store',
      client: { withTimeout: (operation) => operation() },
      longReads: new LongReads(),
      ready: async () => undefined,
    }),
  }
}

const duplicate = () => new MongoServerError({ message: 'E11000', code: 11_000 })

describe('MongoDB queries', () => {
  it.each([
    { filter: {}, sort: {}, hint: { _id: 1 }, order: { _id: 1 } },
    { filter: { org: 'x' }, sort: { at: -1 }, hint: { org: 1, at: 1, _id: 1 }, order: { at: -1, _id: -1 } },
    { filter: { org: 'x' }, sort: { code: 1 }, hint: { org: 1, code: 1 }, order: { code: 1 } },
    { filter: { org: 'x', code: { $in: ['b', 'a'] } }, sort: {}, hint: { org: 1, code: 1 }, order: { _id: 1 } },
    {
      filter: { 'job.dueAt': { $lte: new Date(0) } },
      sort: { 'job.dueAt': 1 },
      hint: { 'job.dueAt': 1, _id: 1 },
      order: { 'job.dueAt': 1, _id: 1 },
    },
  ] satisfies { filter: Filter; sort: Record<string, 1 | -1>; hint: object; order: object }[])(
    'by $filter sorted by $sort use an index that has their order',
    async ({ filter, sort, hint, order }) => {
      const { calls, items } = collectionOn(() => [])
      await items.find(filter, { sort, limit: 10 })
      const [[sentFilter, options]] = calls as [[Filter, { hint: object; sort: object }]]
      expect(sentFilter).toEqual(filter)
      expect([JSON.stringify(options.hint), JSON.stringify(options.sort)]).toEqual([JSON.stringify(hint), JSON.stringify(order)])
    },
  )
})

describe('Reads of one organization while MongoDB is slow', () => {
  const filter = { organizationId: 'org_a' }
  const code = (read: Promise<unknown>) =>
    read.then(
      () => 'read',
      (error) => error.code as string,
    )

  it.each([
    { what: 'long pages', read: (items: MongoCollection<StoredDocument>) => items.find(filter, { limit: 101 }) },
    {
      what: 'pages that skip many entries',
      read: (items: MongoCollection<StoredDocument>) => items.find({ ...filter, code: 'a' }, { sort: { at: 1 }, limit: 1 }),
    },
    { what: 'counts', read: (items: MongoCollection<StoredDocument>) => items.countDocuments(filter) },
  ])('leave connections to others, and wait in a limited queue: $what', async ({ read }) => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const { calls, items } = collectionOn(() => promise)
    const reads = Array.from({ length: 16 + 1_000 + 5 }, () => code(read(items)))
    // The last reads are refused at once; waiting reads continue.
    expect(await Promise.all(reads.slice(-5))).toEqual(Array(5).fill('service_unavailable'))
    expect(calls).toHaveLength(16)
    expect(calls[0]![1]).toMatchObject({ maxTimeMS: 10_000 })
    const others = [items.find({ organizationId: 'org_b' }, { limit: 1_000 }), items.find(filter, { limit: 100 })]
    await new Promise((done) => setImmediate(done))
    expect(calls).toHaveLength(18)
    resolve([])
    await Promise.all(others)
    expect(new Set(await Promise.all(reads.slice(0, -5)))).toEqual(new Set(['read']))
  })
})

describe('MongoDB upsert', () => {
  const upsert = (items: MongoCollection<StoredDocument>) => items.findOneAndUpdate({ _id: 'a' }, { $inc: { n: 1 } }, { upsert: true })

  it('that lost a race is retried on the document that won', async () => {
    const { calls, items } = collectionOn((call) => (call === 1 ? duplicate() : { _id: 'a' }))
    expect(await upsert(items)).toEqual({ _id: 'a' })
    expect(calls).toHaveLength(2)
  })

  it('that meets the key again fails', async () => {
    const { calls, items } = collectionOn(duplicate)
    await expect(upsert(items)).rejects.toThrow(DuplicateKey)
    expect(calls).toHaveLength(2)
  })
})

describe('Failed MongoDB write', () => {
  const timeout = { ok: 1, writeConcernError: { code: 64, errmsg: 'waiting for replication timed out' } }
  const network = new MongoNetworkError('connection 1 closed')
  it.each([
    { what: 'did not reach the majority in time', error: new MongoWriteConcernError(timeout) },
    { what: 'met a primary that stepped down', error: new MongoServerError({ message: 'stepped down', code: 189 }) },
    { what: 'lost its connection', error: network },
    { what: 'lost its connection in a batch', error: new MongoBulkWriteError(network, { getWriteConcernError: () => undefined } as never) },
    { what: 'met a full disk', error: new MongoServerError({ message: 'no space left', code: 14_031 }) },
  ])('that $what is repeatable by its caller, and is not retried here', async ({ error }) => {
    const { calls, items } = collectionOn(() => error)
    await expect(items.findOneAndUpdate({ _id: 'a' }, { $inc: { n: 1 } })).rejects.toMatchObject({
      code: 'service_unavailable',
      shouldRetry: true,
      cause: error,
    })
    expect(calls).toHaveLength(1)
  })

  it('that the server refuses for another reason is passed on as a defect', async () => {
    const error = new MongoServerError({ message: 'Cannot apply $inc', code: 14 })
    await expect(collectionOn(() => error).items.insertOne({ _id: 'a', org: 'x', code: 'c' } as StoredDocument)).rejects.toBe(error)
  })
})
