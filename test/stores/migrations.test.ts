import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { MongoClient } from 'mongodb'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { collectKinds, type Kind, type Migration } from '../../subgraphs/common/adapters/documents/kinds.ts'
import { migrateDatabase } from '../../subgraphs/common/adapters/mongodb/migrations.ts'
import { openOwnMongoStore } from '../../subgraphs/common/adapters/mongodb/own-store.ts'
import type { Claim } from '../../subgraphs/common/adapters/mongodb/store-mark.ts'
import { openSqliteDocumentStore } from '../../subgraphs/common/adapters/sqlite/documents/document-store.ts'
import { migrateFile } from '../../subgraphs/common/adapters/sqlite/documents/migrate-file.ts'
import { fingerprintSecret } from '../../subgraphs/common/identity/secrets.ts'
import type { CollectionSpec, DocumentStore } from '../../subgraphs/common/ports/document-store.ts'
import { type Log, silentLog } from '../../subgraphs/common/process/log.ts'
import { Unfit } from '../../subgraphs/common/process/opening.ts'
import { ADD, letters, REMOVE } from '../support/data/letters.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { dropDatabases, dropServiceDatabases, newDatabaseName, withDatabase } from '../support/engines/mongodb.ts'
import { eventually } from '../support/eventually.ts'
import { runKis } from '../support/processes/cli.ts'
import { soaking } from '../support/soak.ts'

const SPEC: CollectionSpec = { name: 'letters', indexes: [{ fields: ['sentAt'], sparse: true }] }
type Letter = { readonly _id: string; readonly sentAt: Date; readonly pages?: number; readonly sheets?: number }
const KILLS = soaking ? 20 : 1
const OWN = { id: 'inst_own' }
const idOf = (i: number) => `l_${String(i).padStart(4, '0')}`
const lettersOf = (count: number): Letter[] => Array.from({ length: count }, (_, i) => ({ _id: idOf(i), sentAt: new Date(i), pages: i }))
const script = (name: string) => fileURLToPath(new URL(`../support/processes/${name}.ts`, import.meta.url))

interface TestDatabase {
  open(kinds: readonly Kind[], log?: Log): Promise<DocumentStore>
  versions(): Promise<Readonly<Record<string, number>>>
  /** Letters whose migration takes about as long as a process is let live. */
  readonly many: number
  /** Of `migrate-letters.ts`. */
  readonly arguments: readonly string[]
  /** Lets the next process begin at once, which otherwise waits until a killed one counts as dead. */
  unlock(): Promise<void>
  drop(): Promise<void>
}

function sqliteDatabase(): TestDatabase {
  const folder = mkdtempSync(join(tmpdir(), 'kis-migrate-'))
  const file = join(folder, 'letters.sqlite')
  return {
    open: (kinds, log = silentLog) => openSqliteDocumentStore({ file, kinds, log }),
    async versions() {
      using database = new DatabaseSync(file, { readOnly: true })
      const rows = database.prepare('SELECT kind, version FROM schema_versions').all()
      return Object.fromEntries(rows.map(({ kind, version }) => [kind, Number(version)]))
    },
    many: 4_000,
    arguments: [file],
    unlock: async () => undefined,
    drop: async () => rmSync(folder, { recursive: true }),
  }
}

function mongoDatabase(url: string): TestDatabase {
  const database = newDatabaseName()
  const client = new MongoClient(url)
  const db = client.db(database)
  return {
    open: async (kinds, log = silentLog) => (await openOwnMongoStore({ url, database }, async () => OWN, { kinds, log })).store,
    async versions() {
      const notes = await db
        .collection('schema_versions')
        .find({ version: { $exists: true } })
        .toArray()
      return Object.fromEntries(notes.map(({ _id, version }) => [String(_id), version]))
    },
    many: 1_000,
    arguments: [url, database],
    async unlock() {
      await db.collection('schema_versions').updateMany({ until: { $exists: true } }, { $set: { until: new Date(0) } })
      await db.collection('programs').deleteMany({})
    },
    async drop() {
      await client.close()
      await dropDatabases(url, database)
    },
  }
}

/** Suites that run at once, each of which has one place after the other. */
function atOnce(name: string, declare: () => void): void {
  describe.concurrent(name, () => {
    describe('one by one', { concurrent: false }, declare)
  })
}

function suite(openDatabase: () => TestDatabase): void {
  let testDatabase: TestDatabase
  beforeEach(() => {
    testDatabase = openDatabase()
  })
  afterEach(() => testDatabase.drop())

  const fill = async (count: number) => {
    await using store = await testDatabase.open(letters())
    const all = lettersOf(count)
    for (let i = 0; i < count; i += 1_000) await store.collection<Letter>(SPEC).insertMissing(all.slice(i, i + 1_000))
  }

  it('runs every document through all steps, once, and finds it by its indexes', async () => {
    await fill(600)
    let converted = 0
    const counting: Migration = {
      ...ADD,
      convert(letter) {
        converted++
        return ADD.convert(letter)
      },
    }
    for (const _ of ['first start', 'second start']) {
      await using store = await testDatabase.open(letters(counting, REMOVE))
      const found = store.collection<Letter>(SPEC)
      expect(await found.findOne({ _id: idOf(599) })).toEqual({ _id: idOf(599), sentAt: new Date(599), sheets: 599 })
      expect(await found.findOne({ sentAt: new Date(300) })).toMatchObject({ _id: idOf(300), sheets: 300 })
      expect(await found.find({ _id: { $gt: '' } }, { limit: 1_000 })).toHaveLength(600)
    }
    expect(converted).toBe(600)
    expect(await testDatabase.versions()).toEqual({ letters: 3 })
  })

  it('continues from the recorded version, and logs what it does', async () => {
    await fill(3)
    await (await testDatabase.open(letters(ADD)))[Symbol.asyncDispose]()
    const lines: string[] = []
    const log = pino({ level: 'warn' }, { write: (line) => void lines.push(line) })
    await using store = await testDatabase.open(letters(ADD, REMOVE), log)
    expect(await store.collection<Letter>(SPEC).findOne({ _id: idOf(2) })).toEqual({ _id: idOf(2), sentAt: new Date(2), sheets: 2 })
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { kind: 'letters', from: 2, to: 3, of: 3, msg: 'migrating documents to the version of this program' },
      { msg: 'the documents are migrated' },
    ])
  })

  it('refuses documents of a newer version, and preserves them', async () => {
    await fill(3)
    await (await testDatabase.open(letters(REMOVE)))[Symbol.asyncDispose]()
    await expect(testDatabase.open(letters())).rejects.toThrow(
      / has documents of the kind letters in version 2; this program knows 1\. Start a newer version of the program\./,
    )
    expect(await testDatabase.versions()).toEqual({ letters: 2 })
  })

  it('records no version when a step fails midway, and completes the rest after a repair', async () => {
    await fill(600)
    const failing: Migration = {
      ...ADD,
      convert(letter) {
        if (letter._id === idOf(400)) throw new Error('a letter that no step knows')
        return ADD.convert(letter)
      },
    }
    await expect(testDatabase.open(letters(failing))).rejects.toThrow('a letter that no step knows')
    await using store = await testDatabase.open(letters(ADD))
    expect(await store.collection<Letter>(SPEC).findOne({ _id: idOf(400) })).toMatchObject({ pages: 400, sheets: 400 })
    expect(await testDatabase.versions()).toEqual({ letters: 2 })
  })

  it('records the version of a new store', async () => {
    await (await testDatabase.open(letters(REMOVE)))[Symbol.asyncDispose]()
    expect(await testDatabase.versions()).toEqual({ letters: 2 })
  })

  it('completes when it is killed at any moment, and restarted', async () => {
    const count = testDatabase.many
    await fill(count)
    for (let kill = 0; kill < KILLS; kill++) {
      await testDatabase.unlock()
      const program = fork(script('migrate-letters'), testDatabase.arguments)
      const ended = once(program, 'exit')
      await once(program, 'message')
      const timer = setTimeout(() => program.kill('SIGKILL'), Math.random() * 400)
      await ended
      clearTimeout(timer)
    }
    let store: DocumentStore | undefined
    // What a killed one had sent may come after its end, and take the lock once more.
    await eventually(async () => {
      await testDatabase.unlock()
      store = await testDatabase.open(letters(ADD, REMOVE)).catch((error) => {
        if (!(error instanceof Unfit)) throw error
        return undefined
      })
      return store !== undefined
    }, 30_000)
    await using opened = store!
    const found: Letter[] = []
    for (let after = ''; ; after = found.at(-1)!._id) {
      const page = await opened.collection<Letter>(SPEC).find({ _id: { $gt: after } }, { sort: { _id: 1 }, limit: 1_000 })
      found.push(...page)
      if (page.length < 1_000) break
    }
    expect(found).toEqual(lettersOf(count).map(({ pages, ...letter }) => ({ ...letter, sheets: pages })))
    expect(await testDatabase.versions()).toEqual({ letters: 3 })
  })
}

atOnce('Migration of a SQLite file', () => {
  suite(sqliteDatabase)

  it('changes nothing in a file unless all of it succeeds', async () => {
    const testDatabase = sqliteDatabase()
    const file = testDatabase.arguments[0]!
    try {
      {
        await using store = await testDatabase.open(letters())
        await store.collection<Letter>(SPEC).insertMissing(lettersOf(600))
      }
      const failing: Migration = {
        ...ADD,
        convert(letter) {
          if (letter._id === idOf(400)) throw new Error('a letter that no step knows')
          return ADD.convert(letter)
        },
      }
      await expect(migrateFile(file, letters(failing), silentLog)).rejects.toThrow('a letter that no step knows')
      await using store = await testDatabase.open(letters())
      expect(await store.collection<Letter>(SPEC).findOne({ _id: idOf(0) })).not.toHaveProperty('sheets')
    } finally {
      await testDatabase.drop()
    }
  })
})

await onEngine('KIS_TEST_MONGODB_URL', 'Migration of a MongoDB database', (url) => {
  atOnce('Migration of a MongoDB database', () => suite(() => mongoDatabase(url)))

  atOnce('programs of two versions on a MongoDB database', () => {
    let database: string
    let client: MongoClient
    const children = new Set<ChildProcess>()
    beforeEach(() => {
      database = newDatabaseName()
      client = new MongoClient(url)
    })
    afterEach(async () => {
      for (const child of children) child.kill('SIGKILL')
      children.clear()
      await client.close()
      await dropDatabases(url, database)
    })

    type Raw = { _id: string; pages?: number; sheets?: number; reads?: number; sentAt?: Date }
    const raw = () => client.db(database).collection<Raw>('letters')
    const fill = (count: number) => raw().insertMany(lettersOf(count))
    const migrate = (...migrations: readonly Migration[]) => migrateDatabase(client.db(database), letters(...migrations), silentLog)
    const unconverted = () => raw().countDocuments({ sheets: { $exists: false } })
    const notes = () => client.db(database).collection('schema_versions').find().toArray()
    const programs = () => client.db(database).collection<{ _id: string; kinds?: object; seenAt: Date; leavesWord?: true }>('programs')

    it('both belong to one installation, the first of which sets its ID', async () => {
      const claim = async (own: Claim) => {
        const opened = await openOwnMongoStore({ url, database }, async () => own, { kinds: letters(), log: silentLog })
        await opened.store[Symbol.asyncDispose]()
        return opened.installation
      }
      const claims = Array.from({ length: 5 }, (_, i) => claim({ id: null, newId: () => `inst_${i}` }))
      const [first, ...others] = await Promise.all(claims)
      for (const other of others) expect(other).toEqual(first)
      expect(await claim(first!)).toEqual(first)
      await expect(claim({ ...OWN, id: 'inst_other' })).rejects.toThrow(`${database} in MongoDB belongs to the installation ${first!.id}`)
    })

    it('migrate once if they start together', async () => {
      await fill(600)
      const both = await Promise.allSettled([migrate(ADD), migrate(ADD)])
      expect(await unconverted()).toBe(0)
      for (const outcome of both) {
        if (outcome.status === 'fulfilled') await outcome.value[Symbol.asyncDispose]()
        else
          expect(outcome.reason).toMatchObject({
            problems: [expect.stringMatching(`The database ${database} in MongoDB is being migrated by another process`)],
          })
      }
      expect(both.map(({ status }) => status)).toContain('fulfilled')
    })

    it('run beside each other if the migration is additive, and what the earlier one writes is migrated after its end', async () => {
      await using earlier = await migrate()
      await fill(300)
      await using later = await migrate(ADD)
      await raw().insertOne({ _id: 'l_new', pages: 7 })
      await later.again()
      expect(await unconverted()).toBe(1)
      // It may also start again, beside the later one.
      const again = await migrate()
      await earlier[Symbol.asyncDispose]()
      await later.again()
      expect(await unconverted()).toBe(1)
      await again[Symbol.asyncDispose]()
      await later.again()
      expect(await raw().findOne({ _id: 'l_new' })).toEqual({ _id: 'l_new', pages: 7, sheets: 7 })
      expect(await notes()).toEqual([{ _id: 'letters', version: 2, oldestProgram: 1 }])
      expect(await programs().countDocuments()).toBe(1)
    })

    it('leave what the earlier one wrote to the next later one, if the later one ends first', async () => {
      const earlier = await migrate()
      const later = await migrate(ADD)
      await raw().insertOne({ _id: 'l_new', pages: 7 })
      await later[Symbol.asyncDispose]()
      await earlier[Symbol.asyncDispose]()
      await using next = await migrate(ADD, REMOVE)
      expect(await raw().findOne({ _id: 'l_new' })).toEqual({ _id: 'l_new', sheets: 7 })
      await next.again()
      expect(await programs().countDocuments()).toBe(1)
    })

    it('wait for the end of the earlier one if the migration is not additive, without a record before', async () => {
      await fill(3)
      await using earlier = await migrate()
      const waits = `The database ${database} in MongoDB is used by programs of an earlier version, which cannot read documents of the kind letters in version 3: stop them, and the migration begins`
      await expect(migrate(ADD, REMOVE)).rejects.toEqual(new Unfit([waits]))
      // So the earlier one may start again meanwhile.
      await (await migrate())[Symbol.asyncDispose]()
      expect(await unconverted()).toBe(3)
      await earlier[Symbol.asyncDispose]()
      await using _later = await migrate(ADD, REMOVE)
      expect(await raw().findOne({ _id: idOf(2) })).toEqual({ _id: idOf(2), sentAt: new Date(2), sheets: 2 })
      await expect(migrate(ADD)).rejects.toThrow('in version 3; this program knows 2')
    })

    it('count as ended without a heartbeat for two minutes', async () => {
      const silentFor = (ms: number) =>
        programs().replaceOne(
          { _id: 'killed' },
          { kinds: { letters: 1 }, leavesWord: true, seenAt: new Date(Date.now() - ms) },
          { upsert: true },
        )
      await silentFor(60_000)
      await expect(migrate(REMOVE)).rejects.toThrow(Unfit)
      await silentFor(121_000)
      await using _later = await migrate(REMOVE)
    })

    it('wait also for one of version 0.2, which records no end', async () => {
      await programs().insertOne({ _id: 'of 0.2', kinds: { letters: 1 }, seenAt: new Date() })
      await expect(migrate(ADD)).rejects.toThrow(/stop them/)
      await programs().deleteOne({ _id: 'of 0.2' })
      await using _later = await migrate(ADD)
    })

    it('revert nothing that a later one has recorded, if they were paused so long that they counted as ended', async () => {
      const sleeper = await migrate(ADD)
      const { store } = sleeper
      await programs().updateMany({}, { $set: { seenAt: new Date(0) } })
      await using _later = await migrate(ADD, REMOVE)
      await expect(store.record('letters', { version: 2, oldestProgram: 1 })).rejects.toThrow(/duplicate key/)
      expect(await notes()).toEqual([{ _id: 'letters', version: 3, oldestProgram: 3 }])
    })

    it('follow `kis migrate`, which is of their installation, and changes nothing the second time', async () => {
      const env = { KIS_MONGODB_URL: withDatabase(url, database) }
      const migrated = ['billing', 'inference', 'knowledge'].map((part) => `${part}: the documents have the version of this program`)
      try {
        for (const _ of ['first time', 'second time']) {
          expect(await runKis({ ...env, KIS_SECRET: '0'.repeat(64) }, 'migrate')).toEqual({ code: 0, lines: migrated, errors: '' })
        }
        const first = { secretFingerprint: fingerprintSecret(Buffer.from('0'.repeat(64))), sealedPepper: '' }
        await client
          .db(`${database}_billing`)
          .collection<{ _id: string }>('bootstrap')
          .insertOne({ _id: 'operator', ...first })
        expect(await runKis({ ...env, KIS_SECRET: '1'.repeat(64) }, 'migrate')).toMatchObject({
          code: 1,
          lines: [],
          errors: expect.stringContaining('was created with another secret'),
        })
      } finally {
        await dropServiceDatabases(url, database)
      }
    }, 90_000)

    it('lose no concurrent change of others', async () => {
      await using _earlier = await migrate()
      await fill(400)
      let isDone = false
      const changing = (async () => {
        let changes = 0
        for (; !isDone; changes++) await raw().updateOne({ _id: idOf(changes % 400) }, { $inc: { reads: 1 }, $set: { pages: 9 } })
        return changes
      })()
      await using _later = await migrate(ADD)
      isDone = true
      const changes = await changing
      const found = await raw()
        .find({}, { sort: { _id: 1 } })
        .toArray()
      expect(found.reduce((sum, { reads = 0 }) => sum + reads, 0)).toBe(changes)
      expect(found.filter(({ pages, sheets }) => pages !== 9 && pages !== sheets)).toEqual([])
    })

    it('report the progress of another one, and continue when that is dead', async () => {
      await fill(3)
      const locked = (until: Date) =>
        client
          .db(database)
          .collection<{ _id: string }>('schema_versions')
          .replaceOne({ _id: ' lock' }, { by: 'another', until, kind: 'letters', done: 1 }, { upsert: true })
      await locked(new Date(Date.now() + 60_000))
      await expect(migrate(ADD)).rejects.toThrow(
        `${database} in MongoDB is being migrated by another process: 1 documents of the kind letters are done`,
      )
      await locked(new Date(Date.now() - 1))
      await using _later = await migrate(ADD)
      expect(await unconverted()).toBe(0)
      expect(await notes()).toEqual([{ _id: 'letters', version: 2, oldestProgram: 1 }])
    })

    /** Starts a program of the version. Gives its process, and what `/readyz` says of it now. */
    const start = (version: number) => {
      const program = fork(script('letters-program'), [url, database, String(version)])
      children.add(program)
      const ended = once(program, 'exit')
      let problems: readonly string[] = ['not started']
      program.on('message', (message) => {
        problems = (message as { problems: readonly string[] }).problems
      })
      const stop = async () => {
        program.kill('SIGTERM')
        expect((await ended)[0]).toBe(0)
      }
      return { stop, problems: () => problems, isReady: () => eventually(async () => problems.length === 0, 20_000) }
    }

    it('are processes that replace each other without a stop, or by a stop that the later one waits for', async () => {
      const first = start(1)
      await first.isReady()
      const second = start(2)
      await second.isReady()
      const writes = (version: number) => raw().countDocuments({ _id: { $regex: `^of_${version}_` } })
      await eventually(async () => (await writes(1)) > 5 && (await writes(2)) > 5, 20_000)
      expect(first.problems()).toEqual([])
      await first.stop()

      const third = start(3)
      const waiting = `document store: The database ${database} in MongoDB is used by programs of an earlier version, which cannot read`
      await eventually(async () => third.problems()[0]?.startsWith(waiting) === true, 20_000)
      expect(await raw().countDocuments({ pages: { $exists: false } })).toBe(0)
      expect(second.problems()).toEqual([])
      await second.stop()
      await third.isReady()
      expect(
        await raw()
          .find({ $or: [{ pages: { $exists: true } }, { sheets: { $exists: false } }] })
          .toArray(),
      ).toEqual([])
      await third.stop()
    }, 90_000)
  })
})

it('accepts no migrations of an undeclared kind', () => {
  const declare = (store: Parameters<Parameters<typeof collectKinds>[0]>[0]) => store.collection(SPEC)
  expect(collectKinds(declare, { letters: [ADD] })).toEqual(letters(ADD))
  expect(() => collectKinds(declare, { leters: [ADD] })).toThrow('there are migrations of leters')
})
