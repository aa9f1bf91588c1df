import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { openSqliteBlobStore } from '../../subgraphs/knowledge/adapters/sqlite/blob-store.ts'
import { blobStoreContract } from './blob-store.ts'

blobStoreContract('SQLite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kis-blobs-'))
  const open = () => openSqliteBlobStore({ file: join(folder, 'blobs.sqlite'), log: silentLog })
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
      await rm(folder, { recursive: true })
    },
  }
})
