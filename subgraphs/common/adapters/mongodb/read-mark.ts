import type { MongoDatabase } from '../../documents/mongodb-url.ts'
import type { Installation } from '../../identity/installation.ts'
import { connectMongo } from './connection.ts'
import { translated } from './failures.ts'
import { MARKS, type Mark } from './store-mark.ts'

/**
 * Says whose a database is, without claiming it; null: nobody's.
 * @throws {Unfit} the server cannot serve
 */
export async function readMark(database: MongoDatabase): Promise<Installation | null> {
  const client = await connectMongo(database)
  try {
    const mark = await client.db(database.database).collection<Mark>(MARKS).findOne({ _id: 'installation' })
    return mark && { id: mark.installationId, secretFingerprint: mark.secretFingerprint }
  } catch (error) {
    throw translated(error, MARKS, 'The document store')
  } finally {
    await client.close()
  }
}
