import type { MongoDatabase } from '../../../documents/mongodb-url.ts'
import type { Installation } from '../../../identity/installation.ts'
import type { DocumentStore } from '../../../ports/document-store.ts'
import type { Log } from '../../../process/log.ts'
import type { Kind } from '../../documents/kinds.ts'
import { connectMongo } from '../connection.ts'
import { documentsOf } from '../document-store.ts'
import { translated } from '../failures.ts'
import { type Claim, claimDatabase } from './store-mark.ts'
import { Upgrade } from './upgrade.ts'

/**
 * Connects to a database, checks that the server is suitable and that the database is of this installation, brings its
 * documents to the version of this program, and opens them. Import it when a database is configured: the driver takes
 * ten megabytes.
 * @throws {Error} the database is of another installation or another secret, or has documents of a newer version
 * @throws {Unfit} the server cannot serve, or another process must finish first
 */
export async function openClaimedMongoStore(
  { url, database }: MongoDatabase,
  claiming: () => Promise<Claim>,
  { kinds, log }: { readonly kinds: readonly Kind[]; readonly log: Log },
): Promise<{ readonly store: DocumentStore; readonly installation: Installation }> {
  const client = await connectMongo({ url, database })
  try {
    const db = client.db(database)
    const installation = await claimDatabase(db, claiming)
    const upgrade = await Upgrade.begin(db, kinds, log)
    log.info({ database }, 'documents are in MongoDB')
    return { store: documentsOf(client, database, upgrade), installation }
  } catch (error) {
    await client.close()
    throw translated(error, 'installation', 'The document store')
  }
}
