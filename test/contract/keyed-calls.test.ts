import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openMongoDocumentStore } from '../../subgraphs/common/adapters/mongodb/document-store.ts'
import { openSqliteDocumentStore } from '../../subgraphs/common/adapters/sqlite/documents/document-store.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { dropDatabases, newDatabaseName } from '../support/engines/mongodb.ts'
import { MemoryDocumentStore } from '../support/memory-document-store.ts'
import { keyedCallsContract } from './keyed-calls.ts'

keyedCallsContract('the fake', async () => ({ store: new MemoryDocumentStore(), close: async () => undefined }))

keyedCallsContract('SQLite', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kis-keyed-'))
  const store = await openSqliteDocumentStore({ file: join(folder, 'inference.sqlite'), log: silentLog })
  return {
    store,
    close: async () => {
      await store[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true })
    },
  }
})

await onEngine('KIS_TEST_MONGODB_URL', 'calls with an idempotency key: MongoDB', (url) => {
  keyedCallsContract('MongoDB', async () => {
    const database = newDatabaseName()
    const store = await openMongoDocumentStore({ url, database, log: silentLog })
    return {
      store,
      close: async () => {
        await store[Symbol.asyncDispose]()
        await dropDatabases(url, database)
      },
    }
  })
})
