import type { MongoDatabase } from '../../documents/mongodb-url.ts'
import type { Installation, OwnInstallation } from '../../identity/installation.ts'
import type { DocumentStore } from '../../ports/document-store.ts'
import type { SecretMark } from '../../rotation/secret-mark.ts'
import { openMongoDocumentStore } from './document-store.ts'
import { claimDatabase, secretMarkOf } from './store-mark.ts'

/**
 * Claims a database, and opens the documents in it. Import it when a database is configured: the driver takes ten
 * megabytes.
 * @throws as `claimDatabase` and `openMongoDocumentStore`
 */
export async function openClaimedMongoStore(
  database: MongoDatabase,
  claim: Parameters<typeof claimDatabase>[1],
  options: Parameters<typeof claimDatabase>[2],
): Promise<{ readonly store: DocumentStore; readonly installation: Installation; secretMark(own: OwnInstallation): SecretMark }> {
  const installation = await claimDatabase(database, claim, options)
  return {
    store: await openMongoDocumentStore({ ...database, log: options.log }),
    installation,
    secretMark: (own) => secretMarkOf(database, installation, own),
  }
}
