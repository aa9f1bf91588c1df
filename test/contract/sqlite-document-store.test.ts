import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteDocumentStore } from '../../subgraphs/common/adapters/sqlite/documents/document-store.ts'
import { silentLog } from '../../subgraphs/common/process/log.ts'
import { documentStoreContract } from './document-store.ts'

documentStoreContract('SQLite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kis-documents-'))
  const open = () => openSqliteDocumentStore({ file: join(folder, 'documents.sqlite'), log: silentLog })
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
