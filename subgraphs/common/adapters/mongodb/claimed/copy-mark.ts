import type { Db } from 'mongodb'
import type { MongoDatabase } from '../../../documents/mongodb-url.ts'
import { explainForeign, type Installation } from '../../../identity/installation.ts'
import { currentVersion, type Kind } from '../../documents/kinds.ts'
import { connectMongo, STARTS } from '../connection.ts'
import { isDuplicateKey, translated } from '../failures.ts'
import { NOTES, type Note } from '../migrations.ts'
import { goneBefore, PROGRAMS, type Program } from '../programs.ts'
import { MARKS, type Mark } from '../store-mark.ts'

/** What a database has before anybody puts documents into it. */
const WITHOUT_DOCUMENTS: readonly string[] = [MARKS, STARTS, NOTES, PROGRAMS]

/** A database, as far as a copy must know it. */
export interface FoundDatabase {
  /** Whose it is; null: nobody has claimed it. */
  readonly installation: Installation | null
  /** A copy into it has not ended. */
  readonly isCopying: boolean
  readonly isEmpty: boolean
  /** Names of the kinds whose documents are not all in the version of this program. */
  readonly otherKinds: readonly string[]
}

/**
 * Looks at a database without claiming it.
 * @throws {Unfit} the server cannot serve
 */
export function lookAtDatabase(database: MongoDatabase, kinds: readonly Kind[]): Promise<FoundDatabase> {
  return withDatabase(database, async (db) => {
    const mark = await db.collection<Mark>(MARKS).findOne({ _id: 'installation' })
    const names = (await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name)
    let isEmpty = true
    for (const name of names.filter((each) => !each.startsWith('system.') && !WITHOUT_DOCUMENTS.includes(each)))
      isEmpty &&= (await db.collection(name).findOne({}, { projection: { _id: 1 } })) === null
    const notes = new Map((await db.collection<Note>(NOTES).find().toArray()).map((note) => [note._id, note]))
    const isOther = (kind: Kind) => {
      return (notes.get(kind.name)?.version ?? 1) !== currentVersion(kind)
    }
    const installation = mark && { id: mark.installationId, secretFingerprint: mark.secretFingerprint }
    return { installation, isCopying: mark?.copying === true, isEmpty, otherKinds: kinds.filter(isOther).map(({ name }) => name) }
  })
}

/** What the programs that use a database have said of themselves last, a text for each. It changes every 30 s. */
export function readSigns(database: MongoDatabase): Promise<readonly string[]> {
  return withDatabase(database, async (db) => {
    const programs = await db
      .collection<Program>(PROGRAMS)
      .find({ seenAt: { $gte: goneBefore() } })
      .toArray()
    return programs.map(({ _id, seenAt }) => `${_id} ${seenAt.getTime()}`)
  })
}

/**
 * Claims a database for a copy of the installation: nothing starts on it until `endCopyInto`. Repeatable.
 * @throws {Error} it belongs to another installation, or to this one as a whole
 * @throws {Unfit} the server cannot serve
 */
export function beginCopyInto(database: MongoDatabase, { id, secretFingerprint }: Installation): Promise<void> {
  return withDatabase(database, async (db) => {
    const marks = db.collection<Mark>(MARKS)
    const own = { installationId: id, secretFingerprint }
    await marks.insertOne({ _id: 'installation', ...own, copying: true }).catch((error) => {
      if (!isDuplicateKey(error)) throw error
    })
    const found = (await marks.findOne({ _id: 'installation' }))!
    const name = `The database ${database.database} in MongoDB`
    const problem = explainForeign(
      name,
      { id: found.installationId, secretFingerprint: found.secretFingerprint },
      { id, secretFingerprint },
    )
    if (problem) throw new Error(problem)
    if (!found.copying) throw new Error(`${name} is in use: a service has started on it.`)
  })
}

/** Lets the service start on the database. Repeatable. */
export function endCopyInto(database: MongoDatabase): Promise<void> {
  return withDatabase(database, async (db) => {
    // Only copies can have been here, of which some were killed.
    await db.collection<Program>(PROGRAMS).deleteMany({})
    await db.collection<Mark>(MARKS).updateOne({ _id: 'installation' }, { $unset: { copying: '' } })
  })
}

async function withDatabase<T>(database: MongoDatabase, run: (db: Db) => Promise<T>): Promise<T> {
  const client = await connectMongo(database)
  try {
    return await run(client.db(database.database))
  } catch (error) {
    throw translated(error, MARKS, 'The document store')
  } finally {
    await client.close()
  }
}
