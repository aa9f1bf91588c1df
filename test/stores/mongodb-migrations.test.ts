import { MongoClient } from 'mongodb'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Kind, Migration } from '../../subgraphs/common/adapters/documents/kinds.ts'
import { openMongoDocumentStore } from '../../subgraphs/common/adapters/mongodb/document-store.ts'
import { claimDatabase } from '../../subgraphs/common/adapters/mongodb/store-mark.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { Unfit } from '../../subgraphs/common/process/opening.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { dropDatabases, newDatabaseName } from '../support/engines/mongodb.ts'

const SPEC = { name: 'letters', indexes: [] }
type Letter = { readonly _id: string; readonly sentAt: Date; readonly pages: number }
const MIGRATION: Migration = ({ pages, ...letter }) => ({ ...letter, sheets: pages ?? letter.sheets ?? 1 })
const OWN = { id: 'inst_own', secretFingerprint: 'a' }

await onEngine('KIS_TEST_MONGODB_URL', 'the mark and the versions of a MongoDB database', async (url) => {
  let database: string
  let client: MongoClient
  beforeEach(() => {
    database = newDatabaseName()
    client = new MongoClient(url)
  })
  afterEach(async () => {
    await client.close()
    await dropDatabases(url, database)
  })

  const kinds = (...migrations: readonly Migration[]): readonly Kind[] => [{ name: 'letters', migrations }]
  const claim = (own: Awaited<ReturnType<Parameters<typeof claimDatabase>[1]>>, known = kinds()) =>
    claimDatabase({ url, database }, async () => own, { kinds: known, log: silentLog })
  const versions = () => client.db(database).collection('schema_versions').find().toArray()

  it('is given once, to whoever is first, also when several are', async () => {
    const claims = Array.from({ length: 5 }, (_, i) => claim({ id: null, newId: () => `inst_${i}`, secretFingerprint: 'a' }))
    const [first, ...others] = await Promise.all(claims)
    for (const other of others) expect(other).toEqual(first)
    expect(await claim(first!)).toEqual(first)
  })

  it('of another installation, or another secret, is refused', async () => {
    await claim(OWN)
    await expect(claim({ ...OWN, id: 'inst_other' })).rejects.toThrow(`${database} in MongoDB belongs to the installation inst_own`)
    await expect(claim({ ...OWN, secretFingerprint: 'b' })).rejects.toThrow(/was made with another secret: .*KIS_SECRET/)
    await expect(claim({ id: null, newId: () => 'inst_x', secretFingerprint: 'b' })).rejects.toThrow('was made with another secret')
  })

  it('brings documents up to date once, one process at a time, and refuses newer ones', async () => {
    await using store = await openMongoDocumentStore({ url, database, log: silentLog })
    const letters = store.collection<Letter>(SPEC)
    await letters.insertMissing(Array.from({ length: 600 }, (_, i) => ({ _id: `l_${i}`, sentAt: new Date(i), pages: i })))
    await claim(OWN)
    expect(await versions()).toEqual([{ _id: 'letters', version: 1 }])

    const both = await Promise.allSettled([claim(OWN, kinds(MIGRATION)), claim(OWN, kinds(MIGRATION))])
    const refused = both.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    expect(refused.length).toBeLessThan(2)
    for (const error of refused) expect(error).toBeInstanceOf(Unfit)
    expect(await claim(OWN, kinds(MIGRATION))).toEqual(OWN)
    expect(await versions()).toEqual([{ _id: 'letters', version: 2 }])
    expect(await letters.findOne({ _id: 'l_599' })).toEqual({ _id: 'l_599', sentAt: new Date(599), sheets: 599 })
    expect(await letters.find({ _id: { $gt: '' } }, { limit: 1_000 })).toHaveLength(600)
    await expect(claim(OWN)).rejects.toThrow('has documents of the kind letters in version 2; this program knows 1')
  })

  it('goes on where a process that has gone left off', async () => {
    await using store = await openMongoDocumentStore({ url, database, log: silentLog })
    const letters = store.collection<Letter>(SPEC)
    await letters.insertMissing([{ _id: 'a', sentAt: new Date(1), pages: 7 }, { _id: 'b', sentAt: new Date(2), sheets: 8 } as never])
    const left = (migratingUntil: Date) =>
      client
        .db(database)
        .collection<{ _id: string }>('schema_versions')
        .replaceOne({ _id: 'letters' }, { version: 1, migratingUntil }, { upsert: true })
    await left(new Date(Date.now() + 60_000))
    await expect(claim(OWN, kinds(MIGRATION))).rejects.toBeInstanceOf(Unfit)
    await left(new Date(Date.now() - 1))
    await claim(OWN, kinds(MIGRATION))
    expect(await letters.findOne({ _id: 'a' })).toMatchObject({ sheets: 7 })
    expect(await letters.findOne({ _id: 'b' })).toMatchObject({ sheets: 8 })
  })
})
