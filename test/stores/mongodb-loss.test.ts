import { MongoClient } from 'mongodb'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { CollectionSpec, DocumentStore, StoredDocument } from '../../subgraphs/common/ports/document-store.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { Unfit } from '../../subgraphs/common/process/opening.ts'
import { openMongoBlobStore } from '../../subgraphs/knowledge/adapters/mongodb/blob-store.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { dropDatabases, newDatabaseName, withUser } from '../support/engines/mongodb.ts'
import { DISK_FULL, MongoProxy, NO_PRIMARY, NO_RIGHTS, WRONG_PASSWORD } from '../support/engines/mongodb-proxy.ts'
import { openMongoDocumentStore } from '../support/engines/open-mongodb.ts'

interface Item extends StoredDocument {
  readonly code?: string
  readonly n?: number
}

const SPEC: CollectionSpec = { name: 'items', indexes: [{ fields: ['code'], unique: true, sparse: true }] }
const UNAVAILABLE = { code: 'service_unavailable', shouldRetry: true, retryAfterMs: expect.any(Number), cause: expect.any(Error) }

await onEngine('KIS_TEST_MONGODB_URL', 'Loss of MongoDB by the stores', (url) => {
  describe('Loss of MongoDB', () => {
    let database: string
    let proxy: MongoProxy
    let store: DocumentStore
    beforeEach(async () => {
      database = newDatabaseName()
      proxy = await MongoProxy.start(url)
      store = await open()
    })
    afterEach(async () => {
      await store[Symbol.asyncDispose]()
      await proxy[Symbol.asyncDispose]()
      await dropDatabases(url, database)
    })
    const open = () => openMongoDocumentStore({ url: proxy.through(url), database, log: silentLog })
    const items = () => store.collection<Item>(SPEC)

    it('returns service_unavailable from every operation while the server is gone, and recovers with it', async () => {
      await using blobs = await openMongoBlobStore({ url: proxy.through(url), database })
      await items().insertOne({ _id: 'a', n: 1 })
      await blobs.put('key', new Uint8Array([1, 2, 3]))
      await proxy.stop()
      const operations = [
        items().findOne({ _id: 'a' }),
        items().find({}, { limit: 10 }),
        items().countDocuments({ code: 'x' }),
        items().insertOne({ _id: 'b' }),
        items().insertMissing([{ _id: 'c' }, { _id: 'd' }]),
        items().findOneAndUpdate({ _id: 'a' }, { $inc: { n: 1 } }),
        items().findOneAndUpdate({ _id: 'e' }, { $inc: { n: 1 } }, { upsert: true }),
        items().findOneAndDelete({ _id: 'a' }),
        items().deleteMany({ code: 'x' }),
        store.ping(AbortSignal.timeout(30_000)),
        blobs.put('key', new Uint8Array([4])),
        blobs.get('key'),
        blobs.delete('key'),
      ]
      for (const { status, ...outcome } of await Promise.allSettled(operations))
        expect({ status, ...outcome }).toMatchObject({ status: 'rejected', reason: UNAVAILABLE })
      await expect(store.ping(AbortSignal.timeout(100))).rejects.toThrow()
      await proxy.resume()
      expect(await items().find({}, { limit: 10 })).toEqual([{ _id: 'a', n: 1 }])
      expect(await blobs.get('key')).toEqual(new Uint8Array([1, 2, 3]))
      await store.ping(AbortSignal.timeout(30_000))
    })

    it('applies an increment once whose response was lost, and reports an unknown outcome', async () => {
      await items().insertOne({ _id: 'a', n: 0 })
      proxy.losesReplies = true
      await expect(items().findOneAndUpdate({ _id: 'a' }, { $inc: { n: 1 } })).rejects.toMatchObject(UNAVAILABLE)
      proxy.losesReplies = false
      expect(await items().findOne({ _id: 'a' })).toEqual({ _id: 'a', n: 1 })
    })

    it('refuses writes while the disk is full, and continues to read', async () => {
      await items().insertOne({ _id: 'a', n: 1 })
      proxy.refusal = DISK_FULL
      for (const write of [
        () => items().insertOne({ _id: 'b' }),
        () => items().insertMissing([{ _id: 'b' }]),
        () => items().findOneAndUpdate({ _id: 'a' }, { $inc: { n: 1 } }),
        () => items().findOneAndDelete({ _id: 'a' }),
      ])
        await expect(write()).rejects.toMatchObject(UNAVAILABLE)
      expect(await items().find({}, { limit: 10 })).toEqual([{ _id: 'a', n: 1 }])
      proxy.refusal = null
      await items().insertOne({ _id: 'b' })
      expect(await items().findOne({ _id: 'b' })).toEqual({ _id: 'b' })
    })

    it('ends a ping by its signal while the server does not respond', async () => {
      await items().insertOne({ _id: 'a' })
      proxy.isFrozen = true
      await expect(store.ping(AbortSignal.timeout(200))).rejects.toThrow(/timeout/)
      proxy.isFrozen = false
    })

    it('ends operations that the server does not complete', async () => {
      await items().insertOne({ _id: 'a' })
      proxy.isFrozen = true
      await expect(items().insertOne({ _id: 'b' })).rejects.toMatchObject(UNAVAILABLE)
      proxy.isFrozen = false
      expect(await items().findOne({ _id: 'a' })).toEqual({ _id: 'a' })
    }, 60_000)
  })

  describe('Start on MongoDB', () => {
    let database: string
    beforeEach(() => {
      database = newDatabaseName()
    })
    afterEach(() => dropDatabases(url, database))
    const openOn = (address: string) => openMongoDocumentStore({ url: address, database, log: silentLog })

    it('reports that the server is too old', async () => {
      await using proxy = await MongoProxy.start(url)
      proxy.wireVersion = 8
      await expect(openOn(proxy.through(url))).rejects.toThrow(/wire version 8.*requires at least 9 \(MongoDB 4\.4\)/)
    })

    it('reports that there is no server', async () => {
      const proxy = await MongoProxy.start(url)
      await proxy.stop()
      await expect(openOn(proxy.through(url))).rejects.toThrow(/MongoDB cannot be reached: connect ECONNREFUSED/)
    })

    it.each([
      { name: 'full', refusal: DISK_FULL, says: /be used: .*disk space/ },
      { name: 'read-only', refusal: NO_PRIMARY, says: /be used: not primary/ },
      { name: 'inaccessible for this user', refusal: NO_RIGHTS, says: /does not accept the user of the URL: not authorized/ },
      { name: 'refusing the password', refusal: WRONG_PASSWORD, says: /does not accept the user of the URL: Authentication failed/ },
    ])('reports that the server is $name', async ({ refusal, says }) => {
      await using proxy = await MongoProxy.start(url)
      proxy.refusal = refusal
      const address = proxy.through(url)
      const error = await openOn(refusal === WRONG_PASSWORD ? withUser(address, 'kis:s3cret') : address).catch((reason) => reason)
      expect(everythingIn(error)).not.toContain('s3cret')
      expect(error).toBeInstanceOf(Unfit)
      expect(error.problems).toEqual([expect.stringMatching(says)])
      proxy.refusal = null
      await (await openOn(address))[Symbol.asyncDispose]()
    })

    it('hides a password that is refused, or that makes the URL malformed', async () => {
      for (const address of [withUser(url, 'user:s3cret'), withUser(url, 'user:s3%cret'), 'mongodb://user:s3cret']) {
        const error = (await openOn(address).catch((reason) => reason)) as Error
        expect(error).toBeInstanceOf(Error)
        expect(everythingIn(error)).not.toMatch(/s3cret|cret/)
      }
    })

    it('names every wrong index, and creates missing ones', async () => {
      await using client = new MongoClient(url)
      const otherDatabase = client.db(database)
      await otherDatabase.collection('first').createIndex({ other: 1 }, { name: 'organizationId_1__id_1' })
      await otherDatabase.collection('second').createIndex({ code: 1 }, { name: 'made_by_hand' })
      await otherDatabase.collection('third').createIndex({ code: 1 }, { name: 'by_hand_but_right', unique: true })
      await using store = await openOn(url)
      store.collection({ name: 'first', indexes: [{ fields: ['organizationId'] }] })
      store.collection({ name: 'second', indexes: [{ fields: ['code'], unique: true }] })
      const third = store.collection<Item>({ name: 'third', indexes: [{ fields: ['code'], unique: true }] })
      const problems = /organizationId_1__id_1 of first is \{ other: 1 \}, not \{ organizationId: 1, _id: 1 \}[\s\S]*made_by_hand of second/
      await expect(store.ping(AbortSignal.timeout(30_000))).rejects.toThrow(problems)
      await expect(third.findOne({ _id: 'a' })).rejects.toThrow(problems)
      await otherDatabase.collection('first').drop()
      await otherDatabase.collection('second').drop()
      await store.ping(AbortSignal.timeout(30_000))
      expect(await third.findOne({ _id: 'a' })).toBeNull()
      expect(await otherDatabase.collection('second').indexes()).toContainEqual(expect.objectContaining({ key: { code: 1 }, unique: true }))
      expect(await otherDatabase.collection('third').indexes()).toHaveLength(2)
    })
  })
})

/** The message, stack and properties of an error and of its causes, as a log would have them at most. */
function everythingIn(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error)
  const own = Object.getOwnPropertyNames(error).map((name) => (error as Record<string, unknown>)[name])
  return own.map((value) => (value instanceof Error ? everythingIn(value) : JSON.stringify(value))).join('\n')
}
