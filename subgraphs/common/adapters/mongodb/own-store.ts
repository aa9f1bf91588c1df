import type { MongoDatabase } from '../../documents/mongodb-url.ts'
import type { OwnDocuments, OwnDocumentsOptions } from '../own-documents.ts'
import { connectMongo } from './connection.ts'
import { announce, documentsOf } from './document-store.ts'
import { translated } from './failures.ts'
import { migrateDatabase } from './migrations.ts'
import { type Claim, claimDatabase } from './store-mark.ts'

/**
 * Connects to a database, checks that the server is suitable and that the database is of this installation, migrates
 * its documents, and opens them. Import it when a database is configured: the driver takes ten megabytes.
 * @throws {Error} the database is of another installation, or has documents of a newer version
 * @throws {Unfit} the server cannot serve, or other processes must finish first
 */
export async function openOwnMongoStore(
  { url, database }: MongoDatabase,
  claiming: () => Promise<Claim>,
  { kinds, inspect, isOfService, log }: Pick<OwnDocumentsOptions, 'kinds' | 'inspect' | 'isOfService' | 'log'>,
): Promise<OwnDocuments> {
  const client = await connectMongo({ url, database })
  try {
    const db = client.db(database)
    const claimed = await claimDatabase(db, claiming)
    await inspect?.(documentsOf(client, database), claimed.madeWith)
    const migrations = await migrateDatabase(db, kinds, log)
    if (isOfService) await announce(client, database, log)
    return { store: documentsOf(client, database, migrations), ...claimed }
  } catch (error) {
    await client.close()
    throw translated(error, 'installation', 'The document store')
  }
}
