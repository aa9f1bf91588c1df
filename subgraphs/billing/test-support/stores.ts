import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryDocumentStore } from '../../../test/support/memory-document-store.ts'
import { openSqliteDocumentStore } from '../../common/adapters/sqlite/documents/document-store.ts'
import type { DocumentStore } from '../../common/ports/document-store.ts'
import { silentLog } from '../../common/process/log.ts'

/** A store for one test. Disposing it deletes everything. */
export const STORES: readonly { readonly name: string; readonly open: () => Promise<DocumentStore> }[] = [
  { name: 'the fake', open: async () => new MemoryDocumentStore() },
  { name: 'SQLite', open: openTemporarySqlite },
]

async function openTemporarySqlite(): Promise<DocumentStore> {
  const folder = await mkdtemp(join(tmpdir(), 'kis-billing-'))
  const store = await openSqliteDocumentStore({ file: join(folder, 'billing.sqlite'), log: silentLog })
  return {
    collection: (spec) => store.collection(spec),
    ping: (signal) => store.ping(signal),
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await rm(folder, { recursive: true })
    },
  }
}
