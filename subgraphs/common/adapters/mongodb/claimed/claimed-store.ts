import type { MongoDatabase } from '../../../documents/mongodb-url.ts'
import type { Installation, OwnInstallation } from '../../../identity/installation.ts'
import type { DocumentStore } from '../../../ports/document-store.ts'
import type { Log } from '../../../process/log.ts'
import type { SecretMark } from '../../../rotation/secret-mark.ts'
import type { Kind } from '../../documents/kinds.ts'
import { connectMongo } from '../connection.ts'
import { announce, documentsOf } from '../document-store.ts'
import { translated } from '../failures.ts'
import { type Claim, claimDatabase, secretMarkOf } from './store-mark.ts'
import { Upgrade } from './upgrade.ts'

/**
 * Connects to a database, checks that the server is suitable and that the database is of this installation, brings its
 * documents to the version of this program, and opens them. Import it when a database is configured: the driver takes
 * ten megabytes.
 * @throws {Error} the database is of another installation or another secret, or has documents of a newer version
 * @throws {Unfit} the server cannot serve, or another process must finish first: a copy, too, unless this is it
 */
export async function openClaimedMongoStore(
  { url, database }: MongoDatabase,
  claiming: () => Promise<Claim>,
  { kinds, log, isCopy = false }: { readonly kinds: readonly Kind[]; readonly log: Log; readonly isCopy?: boolean },
): Promise<{ readonly store: DocumentStore; readonly installation: Installation; secretMark(own: OwnInstallation): SecretMark }> {
  const client = await connectMongo({ url, database })
  try {
    const db = client.db(database)
    const installation = await claimDatabase(db, claiming, isCopy)
    const upgrade = await Upgrade.begin(db, kinds, log)
    await announce(client, database, log)
    const secretMark = (own: OwnInstallation) => secretMarkOf(db, installation, own)
    return { store: documentsOf(client, database, upgrade), installation, secretMark }
  } catch (error) {
    await client.close()
    throw translated(error, 'installation', 'The document store')
  }
}
