import { type Db, MongoClient, ObjectId } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { onEngine } from '../../../../test/support/engines/engine-url.ts'
import { newDatabaseName } from '../../../../test/support/engines/mongodb.ts'
import type { BlobStore } from '../../ports/blob-store.ts'
import { openMongoBlobStore } from './blob-store.ts'

const MINUTE_S = 60

await onEngine('KIS_TEST_MONGODB_URL', 'MongoDB blob store', (url) => {
  describe('MongoDB blob store', () => {
    const database = newDatabaseName()
    const client = new MongoClient(url)
    const db: Db = client.db(database)
    let store: BlobStore & AsyncDisposable
    beforeAll(async () => {
      store = await openMongoBlobStore({ url, database })
    })
    afterAll(async () => {
      await store[Symbol.asyncDispose]()
      await db.dropDatabase()
      await client.close()
    })

    const pointers = db.collection<{ _id: string; uploads: ObjectId[] }>('contents')
    const storedKeys = async () =>
      Promise.all(['contents', 'contents.files', 'contents.chunks'].map((name) => db.collection(name).countDocuments({})))
    /** Creates an announced file with a first chunk, as a crash leaves it. */
    const startUpload = async (key: string, minutesAgo: number) => {
      const id = ObjectId.createFromTime(Math.floor(Date.now() / 1_000) - minutesAgo * MINUTE_S)
      await pointers.updateOne({ _id: key }, { $push: { uploads: id } }, { upsert: true })
      await db.collection('contents.chunks').insertOne({ files_id: id, n: 0, data: Buffer.from('half') })
      return id
    }

    it('stores one file per key, and nothing after its deletion', async () => {
      for (const size of [3_000_000, 10, 0]) await store.put('replaced', new Uint8Array(size).fill(1))
      expect(await storedKeys()).toEqual([1, 1, 0])
      await store.delete('replaced')
      expect(await storedKeys()).toEqual([0, 0, 0])
    })

    it('deletes the rest of an interrupted upload in the next cleanup, and no upload that may continue', async () => {
      await startUpload('interrupted', 10)
      expect(await store.get('interrupted')).toBeNull()
      await store.put('interrupted', new Uint8Array([1]))
      expect(await storedKeys()).toEqual([1, 1, 1])
      await startUpload('interrupted', 10)
      const running = await startUpload('interrupted', 1)
      await store.delete('interrupted')
      expect(await store.get('interrupted')).toBeNull()
      expect((await pointers.findOne({ _id: 'interrupted' }))?.uploads).toEqual([running])
      expect(await storedKeys()).toEqual([1, 0, 1])
      await db.collection('contents.chunks').deleteMany({})
      await pointers.deleteMany({})
    })

    it('preserves the stored file when an upload was cleaned up before its end', async () => {
      await store.put('slow', new Uint8Array([1]))
      const late = store.put('slow', new Uint8Array(32 * 1024 * 1024))
      let isOver = false
      late.then(
        () => (isOver = true),
        () => (isOver = true),
      )
      // The file is announced before the first of its 32 chunks.
      const clearAway = () => pointers.updateOne({ _id: 'slow', 'uploads.0': { $exists: true } }, { $set: { uploads: [] } })
      while (!isOver && (await clearAway()).matchedCount === 0);
      await expect(late).rejects.toMatchObject({ code: 'service_unavailable' })
      expect(await store.get('slow')).toEqual(new Uint8Array([1]))
      expect(await storedKeys()).toEqual([1, 1, 1])
      await store.delete('slow')
    })
  })
})
