import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { MongoClient } from 'mongodb'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Kind, Migration } from '../../subgraphs/common/adapters/documents/kinds.ts'
import { openClaimedMongoStore } from '../../subgraphs/common/adapters/mongodb/claimed/claimed-store.ts'
import { Programs } from '../../subgraphs/common/adapters/mongodb/claimed/programs.ts'
import type { Claim } from '../../subgraphs/common/adapters/mongodb/claimed/store-mark.ts'
import { Upgrade } from '../../subgraphs/common/adapters/mongodb/claimed/upgrade.ts'
import { openMongoDocumentStore } from '../../subgraphs/common/adapters/mongodb/document-store.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { Unfit } from '../../subgraphs/common/process/opening.ts'
import { ADD, LETTERS, REMOVE } from '../support/data/letters.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { dropDatabases, newDatabaseName } from '../support/engines/mongodb.ts'
import { eventually } from '../support/eventually.ts'
import { soaking } from '../support/soak.ts'

const SPEC = { name: 'letters', indexes: [] }
type Letter = { readonly _id: string; readonly sentAt: Date; readonly pages: number }
const KILLS = soaking ? 20 : 4
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
  const opened = (known = kinds(), own: Claim = OWN) =>
    openClaimedMongoStore({ url, database }, async () => own, { kinds: known, log: silentLog })
  /** Opens it, and gives the mark. */
  const claim = async (own: Claim, known = kinds()) => {
    const { store, installation } = await opened(known, own)
    await store[Symbol.asyncDispose]()
    return installation
  }
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

  type Raw = { _id: string; pages?: number; sheets?: number; reads?: number; sentAt?: Date }
  const raw = () => client.db(database).collection<Raw>('letters')
  const fill = (count: number) =>
    raw().insertMany(Array.from({ length: count }, (_, i) => ({ _id: `l_${String(i).padStart(3, '0')}`, sentAt: new Date(i), pages: i })))
  const upgrade = (...migrations: readonly Migration[]) => Upgrade.begin(client.db(database), kinds(...migrations), silentLog)
  const unconverted = () => raw().countDocuments({ sheets: { $exists: false } })
  const withPages = () => raw().countDocuments({ pages: { $exists: true } })

  it('notes the version of a new database, and refuses one that is newer', async () => {
    await claim(OWN, kinds(ADD))
    expect(await versions()).toEqual([{ _id: 'letters', version: 2 }])
    await expect(claim(OWN)).rejects.toThrow('has documents of the kind letters in version 2; this program knows 1')
  })

  it('converts once, by one process at a time, before any serves', async () => {
    await claim(OWN)
    await fill(600)
    const both = await Promise.allSettled([opened(kinds(ADD)), opened(kinds(ADD))])
    expect(await unconverted()).toBe(0)
    for (const outcome of both) {
      if (outcome.status === 'fulfilled') await outcome.value.store[Symbol.asyncDispose]()
      else expect(outcome.reason).toBeInstanceOf(Unfit)
    }
    expect(both.map(({ status }) => status)).toContain('fulfilled')
    await using store = await openMongoDocumentStore({ url, database, log: silentLog })
    const letters = store.collection<Letter>(SPEC)
    expect(await letters.findOne({ _id: 'l_599' })).toEqual({ _id: 'l_599', sentAt: new Date(599), pages: 599, sheets: 599 })
    expect(await letters.find({ _id: { $gt: '' } }, { limit: 1_000 })).toHaveLength(600)
  })

  it('expands beside an earlier program, and contracts when that has gone', async () => {
    await using earlier = await upgrade()
    await fill(300)
    await using later = await upgrade(ADD, REMOVE)
    expect([await unconverted(), await withPages()]).toEqual([0, 300])
    await raw().insertOne({ _id: 'l_new', pages: 7 })
    await later.finish()
    expect(await withPages()).toBe(301)
    // It may also start again, beside the later one.
    await using again = await upgrade()
    await later.finish()
    expect(await withPages()).toBe(301)

    await earlier[Symbol.asyncDispose]()
    await again[Symbol.asyncDispose]()
    await later.finish()
    expect([await unconverted(), await withPages()]).toEqual([0, 0])
    expect(await raw().findOne({ _id: 'l_new' })).toEqual({ _id: 'l_new', sheets: 7 })
    expect(await versions()).toMatchObject([{ _id: 'letters', version: 3, oldestProgram: 3 }])
    await expect(upgrade()).rejects.toThrow('in version 3; this program knows 1')
  })

  it('converts what an earlier program wrote after the conversion, also if that started meanwhile', async () => {
    await fill(10)
    await using later = await upgrade(ADD)
    await using earlier = await upgrade()
    await raw().insertOne({ _id: 'a_late', pages: 5 })
    await later.finish()
    expect(await unconverted()).toBe(1)
    await earlier[Symbol.asyncDispose]()
    await later.finish()
    expect(await raw().findOne({ _id: 'a_late' })).toMatchObject({ pages: 5, sheets: 5 })
    expect(await versions()).toEqual([{ _id: 'letters', version: 2, oldestProgram: 1 }])
  })

  it('loses no change that others make meanwhile', async () => {
    await upgrade().then((earlier) => earlier[Symbol.asyncDispose]())
    await fill(400)
    let isDone = false
    const changing = (async () => {
      let changes = 0
      for (; !isDone; changes++)
        await raw().updateOne({ _id: `l_${String(changes % 400).padStart(3, '0')}` }, { $inc: { reads: 1 }, $set: { pages: 9 } })
      return changes
    })()
    await using _later = await upgrade(ADD)
    isDone = true
    const changes = await changing
    const letters = await raw()
      .find({}, { sort: { _id: 1 } })
      .toArray()
    expect(letters.reduce((sum, { reads = 0 }) => sum + reads, 0)).toBe(changes)
    expect(letters.filter(({ pages, sheets }) => pages !== 9 && pages !== sheets)).toEqual([])
  })

  it('waits with what takes something away while an earlier program serves, if a later step needs it', async () => {
    await using earlier = await upgrade()
    await fill(3)
    const next: Migration = { phase: 'expand', convert: (letter) => ({ to: 'nobody', ...letter }) }
    await expect(upgrade(ADD, REMOVE, next)).rejects.toThrow(/lose what programs of an earlier version read: stop those/)
    expect(await withPages()).toBe(3)
    await earlier[Symbol.asyncDispose]()
    await using _later = await upgrade(ADD, REMOVE, next)
    expect(await raw().findOne({ _id: 'l_002' })).toEqual({ _id: 'l_002', sentAt: new Date(2), sheets: 2, to: 'nobody' })
  })

  it('goes on where a process that has gone left off', async () => {
    await fill(3)
    const left = (migratingUntil: Date) =>
      client
        .db(database)
        .collection<{ _id: string }>('schema_versions')
        .replaceOne({ _id: 'letters' }, { version: 1, to: 2, migratingUntil, after: 'l_000', done: 1, of: 3 }, { upsert: true })
    await left(new Date(Date.now() + 60_000))
    await expect(upgrade(ADD)).rejects.toThrow(
      'another process brings the documents of the kind letters to version 2: 1 of about 3 are done',
    )
    await left(new Date(Date.now() - 1))
    await using _upgrade = await upgrade(ADD)
    expect(
      await raw()
        .find({ sheets: { $exists: true } }, { sort: { _id: 1 } })
        .toArray(),
    ).toHaveLength(2)
    expect(await versions()).toEqual([{ _id: 'letters', version: 2, oldestProgram: 1 }])
  })

  it('has finished for whoever asks for it while it is finishing by itself', async () => {
    await fill(1_000)
    await using upgrade = await Upgrade.begin(client.db(database), [LETTERS], silentLog)
    // It begins by itself, and takes the lease.
    await eventually(async () => {
      const [note] = await versions()
      return note?.migratingUntil !== undefined || note?.version === 3
    })
    await upgrade.finish()
    expect(
      await raw()
        .find({ pages: { $exists: true } }, { sort: { _id: 1 } })
        .toArray(),
    ).toEqual([])
  })

  it('converts what is left when it was broken off while earlier programs were already kept out', async () => {
    await fill(600)
    const notes = client.db(database).collection<{ _id: string; version: number }>('schema_versions')
    {
      await using _earlier = await upgrade(ADD)
      await raw().insertOne({ _id: 'l_early', sentAt: new Date(600), pages: 600 })
    }
    // As after a crash in the middle of the step that takes `pages` away.
    await notes.updateOne({ _id: 'letters' }, { $set: { oldestProgram: 3, oldestDocument: 1, to: 3, migratingUntil: new Date(0) } })
    await using upgraded = await Upgrade.begin(client.db(database), [LETTERS], silentLog)
    await upgraded.finish()
    expect(await withPages()).toBe(0)
    expect(await unconverted()).toBe(0)
    expect(await versions()).toEqual([{ _id: 'letters', version: 3, oldestProgram: 3 }])
  })

  it('sweeps what the earliest programs have written, also when the next step has begun to keep earlier ones out', async () => {
    await fill(3)
    await using running = await upgrade(ADD)
    await raw().insertOne({ _id: 'l_003', sentAt: new Date(3), pages: 3 })
    const keptOut = { oldestProgram: 3, oldestDocument: 1 }
    const notes = client.db(database).collection<{ _id: string }>('schema_versions')
    await notes.updateOne({ _id: 'letters' }, { $set: { ...keptOut, unswept: 1 } })
    await running.finish()
    expect(await unconverted()).toBe(0)
    expect(await versions()).toEqual([{ _id: 'letters', version: 2, ...keptOut }])
  })

  it('ends right when it is killed at any moment, and started again', async () => {
    const count = 3_000
    await fill(count)
    const notes = client.db(database).collection<{ _id: string }>('schema_versions')
    let isDone = false
    const writing = (async () => {
      let writes = 0
      for (; !isDone; writes++) await raw().updateOne({ _id: `l_${String(writes % 1_000).padStart(3, '0')}` }, { $inc: { reads: 1 } })
      return writes
    })()
    for (let kill = 0; kill < KILLS; kill++) {
      const program = fork(fileURLToPath(new URL('../support/processes/upgrade-letters.ts', import.meta.url)), [url, database])
      await once(program, 'message')
      const timer = setTimeout(() => program.kill('SIGKILL'), 20 + Math.random() * 400)
      await once(program, 'exit')
      clearTimeout(timer)
      // Otherwise the next waits for a minute.
      await notes.updateMany({}, { $unset: { migratingUntil: '' } })
      await client.db(database).collection('programs').deleteMany({})
    }
    // What a killed one had sent may come after its end, and takes the lease once more.
    const free = () => notes.updateMany({}, { $unset: { migratingUntil: '' } })
    let begun: Upgrade | undefined
    await eventually(async () => {
      await free()
      begun = await Upgrade.begin(client.db(database), [LETTERS], silentLog).catch((error) => {
        if (!(error instanceof Unfit)) throw error
        return undefined
      })
      return begun !== undefined
    }, 30_000)
    await using upgrade = begun!
    await eventually(async () => {
      await free()
      await upgrade.finish()
      return (await versions())[0]?.version === 3
    }, 30_000)
    isDone = true
    const writes = await writing
    const letters = await raw()
      .find({}, { sort: { _id: 1 } })
      .toArray()
    expect(letters.reduce((sum, { reads = 0 }) => sum + reads, 0)).toBe(writes)
    expect(letters.filter(({ _id, pages, sheets }) => pages !== undefined || _id !== `l_${String(sheets).padStart(3, '0')}`)).toEqual([])
    expect(letters).toHaveLength(count)
  })

  it('counts a program that has ended without a word as gone after two minutes', async () => {
    await using programs = await Programs.join(client.db(database), kinds(ADD), silentLog)
    const seen = (seenAt: Date) =>
      client
        .db(database)
        .collection<{ _id: string }>('programs')
        .replaceOne({ _id: 'killed' }, { kinds: { letters: 1 }, seenAt }, { upsert: true })
    await seen(new Date(Date.now() - 60_000))
    expect(await programs.knowLess('letters', 2)).toBe(true)
    await seen(new Date(Date.now() - 121_000))
    expect(await programs.knowLess('letters', 2)).toBe(false)
  })
})
