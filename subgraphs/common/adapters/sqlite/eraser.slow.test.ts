import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isDeepStrictEqual } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { rawCopies } from '../../../../test/support/data/raw-files.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import type { DocumentStore } from '../../ports/document-store.ts'
import { silentLog } from '../../process/log.ts'
import { openSqliteDocumentStore } from './documents/document-store.ts'

const SECRET = 'ZQsecretسرّي'
/** Long enough for several attempts of the eraser. */
const SOON_MS = 30_000

let folder: string
let store: DocumentStore
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kis-eraser-'))
  store = await opened()
})
afterEach(async () => {
  await store[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const opened = () => openSqliteDocumentStore({ file: join(folder, 'documents.sqlite'), log: silentLog })
const items = () =>
  store.collection<{ _id: string; text: string; organizationId: string }>({ name: 'items', indexes: [{ fields: ['text'] }] })

const copies = () => rawCopies(folder, [SECRET])

/** Rows of many lengths and in no order, so that SQLite moves them between pages; every third has the secret. */
async function fill(): Promise<void> {
  for (let n = 0; n < 1_500; n++) {
    const _id = `item_${(n * 7_919) % 100_003}`
    const text = (n % 3 === 0 ? SECRET : 'kept').repeat(1 + ((n * 31) % 60))
    await items().insertOne({ _id, text, organizationId: n % 3 === 0 ? 'secret' : 'kept' })
  }
}

async function deleteSecrets(): Promise<void> {
  for (let n = 0; n < 1_500; n += 3) await items().findOneAndDelete({ _id: `item_${(n * 7_919) % 100_003}` })
}

it('what is deleted, and the copies that moves between pages leave of it, go from file and log while the store is used', async () => {
  await fill()
  expect(copies()).not.toEqual({})
  await deleteSecrets()
  await eventually(() => isDeepStrictEqual(copies(), {}), SOON_MS)
  await items().insertOne({ _id: 'later', text: 'kept', organizationId: 'kept' })
  expect(await items().findOne({ _id: 'later' })).not.toBeNull()
}, 60_000)

it('what is deleted right before the end is gone after it, with the log', async () => {
  await fill()
  await deleteSecrets()
  await store[Symbol.asyncDispose]()
  expect(copies()).toEqual({})
  expect(readdirSync(folder).filter((name) => /-(wal|shm)$/.test(name))).toEqual([])
  store = await opened()
}, 60_000)

it('a reader that keeps the log holds no write up, and the log is cut when it has gone', async () => {
  await fill()
  const reader = new DatabaseSync(join(folder, 'documents.sqlite'), { readOnly: true })
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM documents_items').get()
  await deleteSecrets()
  await new Promise((resolve) => setTimeout(resolve, 8_000))
  expect(copies()).not.toEqual({})
  await items().insertOne({ _id: 'meanwhile', text: 'kept', organizationId: 'kept' })
  reader.exec('COMMIT')
  reader.close()
  await eventually(() => isDeepStrictEqual(copies(), {}), SOON_MS)
}, 60_000)

it('what a process without all this has left goes after the start', async () => {
  await fill()
  await store[Symbol.asyncDispose]()
  const former = new DatabaseSync(join(folder, 'documents.sqlite'))
  former.exec("PRAGMA secure_delete=OFF; DELETE FROM documents_items WHERE json_extract(doc, '$.organizationId') = 'secret'")
  former.close()
  expect(copies()).not.toEqual({})
  store = await opened()
  await eventually(() => isDeepStrictEqual(copies(), {}), SOON_MS)
}, 60_000)
