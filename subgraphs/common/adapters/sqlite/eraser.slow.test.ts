import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isDeepStrictEqual } from 'node:util'
import { expect, it } from 'vitest'
import { rawCopies } from '../../../../test/support/data/raw-files.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { silentLog } from '../../process/log.ts'
import { openSqliteDocumentStore } from './documents/document-store.ts'

const SECRET = 'ZQsecretسرّي'
/** The eraser packs a file again two minutes after the last packing, or sooner. */
const SOON_MS = 180_000

/** Opens a store of one test, so that the tests can wait for the eraser at the same time. */
async function openTestStore() {
  const folder = mkdtempSync(join(tmpdir(), 'kis-eraser-'))
  const file = join(folder, 'documents.sqlite')
  const opened = () => openSqliteDocumentStore({ file, log: silentLog })
  let store = await opened()
  const items = () =>
    store.collection<{ _id: string; text: string; organizationId: string }>({ name: 'items', indexes: [{ fields: ['text'] }] })
  const copies = () => rawCopies(folder, [SECRET])
  return {
    folder,
    file,
    items,
    copies,
    /** Returns whether no copy of the deleted data is left. */
    isErased: () => isDeepStrictEqual(copies(), {}),
    logBytes: () => statSync(`${file}-wal`).size,
    /**
     * Inserts rows of many lengths and in no order, so that SQLite moves them between pages; every third has the
     * secret.
     */
    async fill(): Promise<void> {
      for (let n = 0; n < 1_500; n++) {
        const _id = `item_${(n * 7_919) % 100_003}`
        const text = (n % 3 === 0 ? SECRET : 'kept').repeat(1 + ((n * 31) % 60))
        await items().insertOne({ _id, text, organizationId: n % 3 === 0 ? 'secret' : 'kept' })
      }
    },
    async deleteSecrets(): Promise<void> {
      for (let n = 0; n < 1_500; n += 3) await items().findOneAndDelete({ _id: `item_${(n * 7_919) % 100_003}` })
    },
    close: () => store[Symbol.asyncDispose](),
    async reopen(): Promise<void> {
      store = await opened()
    },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true })
    },
  }
}

it.concurrent('erases deleted content, and copies left by page moves, while the store is used', async () => {
  await using testStore = await openTestStore()
  await testStore.fill()
  expect(testStore.copies()).not.toEqual({})
  await testStore.deleteSecrets()
  await eventually(testStore.isErased, SOON_MS)
  await testStore.items().insertOne({ _id: 'later', text: 'kept', organizationId: 'kept' })
  expect(await testStore.items().findOne({ _id: 'later' })).not.toBeNull()
}, 420_000)

it.concurrent('erases what was deleted right before the end, and removes the log', async () => {
  await using testStore = await openTestStore()
  await testStore.fill()
  await testStore.deleteSecrets()
  await testStore.close()
  expect(testStore.copies()).toEqual({})
  expect(readdirSync(testStore.folder).filter((name) => /-(wal|shm)$/.test(name))).toEqual([])
  await testStore.reopen()
}, 420_000)

it.concurrent('delays no write while a reader retains the log, and truncates the log once the reader is gone', async () => {
  await using testStore = await openTestStore()
  await testStore.fill()
  const reader = new DatabaseSync(testStore.file, { readOnly: true })
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM documents_items').get()
  await testStore.deleteSecrets()
  // Packing writes the whole file to the log, which the reader prevents from being truncated.
  const before = testStore.logBytes()
  await eventually(() => testStore.logBytes() > before, SOON_MS)
  await testStore.items().insertOne({ _id: 'meanwhile', text: 'kept', organizationId: 'kept' })
  expect(testStore.copies()).not.toEqual({})
  reader.exec('COMMIT')
  reader.close()
  await eventually(testStore.isErased, SOON_MS)
}, 420_000)

it.concurrent('erases at the start what an earlier process deleted and did not erase', async () => {
  await using testStore = await openTestStore()
  await testStore.fill()
  await testStore.close()
  const former = new DatabaseSync(testStore.file)
  former.exec("PRAGMA secure_delete=OFF; DELETE FROM documents_items WHERE json_extract(doc, '$.organizationId') = 'secret'")
  former.close()
  expect(testStore.copies()).not.toEqual({})
  await testStore.reopen()
  await eventually(testStore.isErased, SOON_MS)
}, 420_000)
