import { openMongoBlobStore } from '../../subgraphs/knowledge/adapters/mongodb/blob-store.ts'
import { onEngine } from '../support/engines/engine-url.ts'
import { dropDatabases, newDatabaseName } from '../support/engines/mongodb.ts'
import { blobStoreContract } from './blob-store.ts'

await onEngine('KIS_TEST_MONGODB_URL', 'Blob store: MongoDB', (url) => {
  blobStoreContract('MongoDB', async () => {
    const database = newDatabaseName()
    const open = () => openMongoBlobStore({ url, database })
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
  })
})
