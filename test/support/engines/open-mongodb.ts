import { connectMongo } from '../../../subgraphs/common/adapters/mongodb/connection.ts'
import { announce, documentsOf } from '../../../subgraphs/common/adapters/mongodb/document-store.ts'
import type { MongoDatabase } from '../../../subgraphs/common/documents/mongodb-url.ts'
import type { DocumentStore } from '../../../subgraphs/common/ports/document-store.ts'
import type { Log } from '../../../subgraphs/common/process/log.ts'

/** Opens the documents of a database that is of no installation. */
export async function openMongoDocumentStore({ log, ...database }: MongoDatabase & { readonly log: Log }): Promise<DocumentStore> {
  const client = await connectMongo(database)
  await announce(client, database.database, log)
  return documentsOf(client, database.database)
}
