import type { Db } from 'mongodb'
import type { MongoDatabase } from '../../documents/mongodb-url.ts'
import type { Installation } from '../../identity/installation.ts'
import { connectMongo } from './connection.ts'
import { translated } from './failures.ts'
import { isAnyRunning } from './programs.ts'
import { MARKS, type Mark } from './store-mark.ts'

/**
 * Says whose a database is, without claiming it; null: nobody's.
 * @throws {Unfit} the server cannot serve
 */
export function readMark(database: MongoDatabase): Promise<Installation | null> {
  return looking(database, async (db) => {
    const mark = await db.collection<Mark>(MARKS).findOne({ _id: 'installation' })
    return mark && { id: mark.installationId }
  })
}

/**
 * Whether a process of the service uses a database.
 * @throws {Unfit} the server cannot serve
 */
export function isInUse(database: MongoDatabase): Promise<boolean> {
  return looking(database, isAnyRunning)
}

async function looking<T>(database: MongoDatabase, look: (db: Db) => Promise<T>): Promise<T> {
  const client = await connectMongo(database)
  try {
    return await look(client.db(database.database))
  } catch (error) {
    throw translated(error, MARKS, 'The document store')
  } finally {
    await client.close()
  }
}
