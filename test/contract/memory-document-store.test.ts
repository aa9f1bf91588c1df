import { MemoryDocumentStore } from '../support/memory-document-store.ts'
import { documentStoreContract } from './document-store.ts'

documentStoreContract('in memory, the fake of the unit tests', async () => {
  const store = new MemoryDocumentStore()
  return { store, reopen: async () => store, close: () => store[Symbol.asyncDispose]() }
})
