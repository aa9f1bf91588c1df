import type { Db } from 'mongodb'
import type { MongoDatabase } from '../../documents/mongodb-url.ts'
import { explainForeign, type Installation } from '../../identity/installation.ts'
import { connectMongo, STARTS } from './connection.ts'
import { isDuplicateKey, translated } from './failures.ts'
import { MARKS, type Mark } from './store-mark.ts'

/** What a database has before anybody puts documents into it. */
const WITHOUT_DOCUMENTS: readonly string[] = [MARKS, STARTS, 'schema_versions']

/** A database, as far as a copy must know it. */
export interface FoundDatabase {
  /** Whose it is; null: nobody has claimed it. */
  readonly installation: Installation | null
  /** A copy into it has not ended. */
  readonly isCopying: boolean
  readonly isEmpty: boolean
}

/**
 * Looks at a database without claiming it.
 * @throws {Unfit} the server cannot serve
 */
export function lookAtDatabase(database: MongoDatabase): Promise<FoundDatabase> {
  return withDatabase(database, async (db) => {
    const mark = await db.collection<Mark>(MARKS).findOne({ _id: 'installation' })
    const names = (await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name)
    let isEmpty = true
    for (const name of names.filter((each) => !each.startsWith('system.') && !WITHOUT_DOCUMENTS.includes(each)))
      isEmpty &&= (await db.collection(name).findOne({}, { projection: { _id: 1 } })) === null
    const installation = mark && { id: mark.installationId, secretFingerprint: mark.secretFingerprint }
    return { installation, isCopying: mark?.copying === true, isEmpty }
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

/** Lets the service start on the database. */
export function endCopyInto(database: MongoDatabase): Promise<void> {
  return withDatabase(database, async (db) => {
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
