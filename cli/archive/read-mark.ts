import type { Db } from 'mongodb'
import { connectMongo } from '../../subgraphs/common/adapters/mongodb/connection.ts'
import { translated } from '../../subgraphs/common/adapters/mongodb/failures.ts'
import { isAnyRunning } from '../../subgraphs/common/adapters/mongodb/programs.ts'
import { MARKS, type Mark } from '../../subgraphs/common/adapters/mongodb/store-mark.ts'
import type { MongoDatabase } from '../../subgraphs/common/documents/mongodb-url.ts'
import type { Installation } from '../../subgraphs/common/identity/installation.ts'

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

async function looking<T>(database: MongoDatabase, read: (db: Db) => Promise<T>): Promise<T> {
  const client = await connectMongo(database)
  try {
    return await read(client.db(database.database))
  } catch (error) {
    throw translated(error, MARKS, 'The document store')
  } finally {
    await client.close()
  }
}
