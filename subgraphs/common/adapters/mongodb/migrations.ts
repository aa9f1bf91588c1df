import type { Collection, Db } from 'mongodb'
import { randomHex } from '../../process/ids.ts'
import type { Log } from '../../process/log.ts'
import { Unfit } from '../../process/opening.ts'
import { renewWhile } from '../../process/renew-while.ts'
import type { Kind } from '../documents/kinds.ts'
import { type KindRecord, type MigratedStore, migrate } from '../documents/migrate.ts'
import { convertDocuments } from './convert-documents.ts'
import { isDuplicateKey } from './failures.ts'
import { Programs } from './programs.ts'

/** How often a program says that it is there, and looks for what earlier ones have left. */
const SIGN_EVERY_MS = 30_000
/** A migrating process that reports no page for this long counts as dead. Another one goes on. */
const LEASE_MS = 30_000

/** The collection of the records, and of the lock. */
const NOTES = 'schema_versions'
const LOCK = ' lock'

interface Note extends KindRecord {
  readonly _id: string
}

interface Lock {
  readonly _id: typeof LOCK
  readonly by: string
  readonly until: Date
  readonly kind?: string
  readonly done?: number
}

/**
 * Brings the documents of a database to the version of this program, while programs of the version before use it if the
 * migrations are additive. Until it is disposed, it migrates what those have written when they have ended.
 * @throws {Error} as `migrate`
 * @throws {Unfit} as `migrate`
 */
export async function migrateDatabase(db: Db, kinds: readonly Kind[], log: Log): Promise<Migrations> {
  const programs = new Programs(db, kinds)
  // Before the records are read: whoever migrates notes that first, and then looks who is there.
  await programs.sign()
  try {
    await programs.purgeEqual()
    const migrations = new Migrations(db, kinds, programs, log)
    await migrate(migrations.store, kinds, log)
    migrations.start()
    return migrations
  } catch (error) {
    // The server may be away: then this one counts as ended later.
    await programs.purgeOwn().catch(() => undefined)
    throw error
  }
}

class Migrations implements AsyncDisposable {
  readonly store: MigratedStore
  readonly #kinds: readonly Kind[]
  readonly #programs: Programs
  readonly #log: Log
  #signing: Disposable | undefined
  #working: Promise<void> = Promise.resolve()

  constructor(db: Db, kinds: readonly Kind[], programs: Programs, log: Log) {
    this.#kinds = kinds
    this.#programs = programs
    this.#log = log
    this.store = storeOf(db, programs)
  }

  start(): void {
    this.#signing = renewWhile({ everyMs: SIGN_EVERY_MS, renew: () => this.again().then(() => true) })
  }

  /** Says that this program is there, and migrates what earlier ones have left. */
  again(): Promise<void> {
    this.#working = this.#working.then(async () => {
      try {
        await this.#programs.sign()
        await migrate(this.store, this.#kinds, this.#log)
      } catch (error) {
        if (error instanceof Unfit) this.#log.info(error.message)
        else this.#log.warn({ err: error }, 'what earlier programs have written is not migrated yet; trying again')
      }
    })
    return this.#working
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#signing?.[Symbol.dispose]()
    await this.#working
    // If the server is away, this one counts as ended later.
    await this.#programs.ended().catch(() => undefined)
  }
}

function storeOf(db: Db, programs: Programs): MigratedStore {
  const notes: Collection<Note> = db.collection(NOTES)
  const locks: Collection<Lock> = db.collection(NOTES)
  const by = randomHex(16)
  const name = `The database ${db.databaseName} in MongoDB`
  const leaseEnd = () => new Date(Date.now() + LEASE_MS)
  return {
    name,
    async alone(run) {
      try {
        // A lock that another one holds is not found, and cannot be inserted.
        await locks.updateOne({ _id: LOCK, until: { $lt: new Date() } }, { $set: { by, until: leaseEnd() } }, { upsert: true })
      } catch (error) {
        if (!isDuplicateKey(error)) throw error
        const { kind, done = 0 } = (await locks.findOne({ _id: LOCK })) ?? {}
        throw new Unfit([`${name} is being migrated by another process${kind ? `: ${done} documents of the kind ${kind} are done` : ''}`])
      }
      try {
        await run()
      } finally {
        await locks.deleteOne({ _id: LOCK, by })
      }
    },
    async records() {
      const found = await notes.find({ _id: { $ne: LOCK } }).toArray()
      return new Map(found.map(({ _id, ...record }) => [_id, record]))
    },
    async record(kind, record) {
      // One that slept so long that it counted as ended has lost the lock, and must not take back what a later one recorded.
      await notes.replaceOne({ _id: kind, version: { $not: { $gt: record.version } } }, record, { upsert: true })
    },
    earlierPrograms: (kind, version) => programs.earlier(kind, version),
    count: (kind) => db.collection(kind).estimatedDocumentCount(),
    async convert(kind, convert, report) {
      let done = 0
      await convertDocuments(db, kind, convert, async (count) => {
        done += count
        report(done)
        const { matchedCount } = await locks.updateOne({ _id: LOCK, by }, { $set: { until: leaseEnd(), kind, done } })
        if (matchedCount === 0) throw new Unfit([`${name} is being migrated by another process`])
      })
    },
  }
}
