import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteDocumentStore } from '../../subgraphs/common/adapters/sqlite/documents/document-store.ts'
import type { DocumentStore } from '../../subgraphs/common/ports/document-store.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { onEngine } from './engines/engine-url.ts'
import { dropDatabases, newDatabaseName } from './engines/mongodb.ts'
import { openMongoDocumentStore } from './engines/open-mongodb.ts'
import { MemoryDocumentStore } from './memory-document-store.ts'

interface TestStore {
  readonly name: string
  readonly open: () => Promise<DocumentStore>
}

/** A store for one test. Disposing it deletes everything. */
export const STORES: readonly TestStore[] = [
  { name: 'the fake', open: async () => new MemoryDocumentStore() },
  { name: 'SQLite', open: openTemporarySqlite },
]

/** `STORES`, and MongoDB where an engine is named. `what` names the suite that is skipped without one. */
export async function storesAndMongo(what: string): Promise<readonly TestStore[]> {
  const stores = [...STORES]
  await onEngine('KIS_TEST_MONGODB_URL', `${what} on MongoDB`, (url) => {
    stores.push({ name: 'MongoDB', open: () => openTemporaryDatabase(url) })
  })
  return stores
}

async function openTemporaryDatabase(url: string): Promise<DocumentStore> {
  const database = newDatabaseName()
  const store = await openMongoDocumentStore({ url, database, log: silentLog })
  return {
    collection: (spec) => store.collection(spec),
    ping: (signal) => store.ping(signal),
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await dropDatabases(url, database)
    },
  }
}

async function openTemporarySqlite(): Promise<DocumentStore> {
  const folder = await mkdtemp(join(tmpdir(), 'kis-store-'))
  const store = await openSqliteDocumentStore({ file: join(folder, 'documents.sqlite'), log: silentLog })
  return {
    collection: (spec) => store.collection(spec),
    ping: (signal) => store.ping(signal),
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await rm(folder, { recursive: true })
    },
  }
}
