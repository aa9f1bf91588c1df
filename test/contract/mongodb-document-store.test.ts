import { silentLog } from '../../subgraphs/common/process/log.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { casesBeyond, dropDatabases, newDatabaseName } from '../support/engines/mongodb.ts'
import { openMongoDocumentStore } from '../support/engines/open-mongodb.ts'
import { documentStoreContract } from './document-store.ts'

await onEngine('KIS_TEST_MONGODB_URL', 'Document store: MongoDB', async (url) => {
  const openStore = async () => {
    const database = newDatabaseName()
    const open = () => openMongoDocumentStore({ url, database, log: silentLog })
    let store = await open()
    return {
      store,
      reopen: async () => {
        await store[Symbol.asyncDispose]()
        store = await open()
        return store
      },
      close: async () => {
        await store[Symbol.asyncDispose]()
        await dropDatabases(url, database)
      },
    }
  }
  documentStoreContract('MongoDB', openStore, await casesBeyond(url))
})
