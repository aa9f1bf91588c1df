import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { CollectionSpec } from '../../../ports/document-store.ts'
import { silentLog } from '../../../process/log.ts'
import { collectKinds, type Kind, type Migration } from '../../documents/kinds.ts'
import { openSqliteDocumentStore } from './document-store.ts'

const SPEC: CollectionSpec = { name: 'letters', indexes: [{ fields: ['sentAt'], sparse: true }] }
type Letter = { readonly _id: string; readonly text: string; readonly sentAt: Date; readonly pages?: number; readonly to?: string }
/** A field that gets another name, and one that is new. */
const FIRST: Migration = { phase: 'contract', convert: ({ pages, ...letter }) => ({ ...letter, sheets: pages ?? letter.sheets ?? 1 }) }
const SECOND: Migration = { phase: 'expand', convert: (letter) => ({ to: 'nobody', ...letter }) }
const NOTHING: Kind = { name: 'others', migrations: [] }

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kis-migrate-'))
  file = join(folder, 'letters.sqlite')
})
afterEach(() => rmSync(folder, { recursive: true }))

const open = (migrations?: readonly Migration[]) =>
  openSqliteDocumentStore({ file, log: silentLog, ...(migrations && { kinds: [{ name: 'letters', migrations }, NOTHING] }) })
const copies = () => readdirSync(folder).filter((name) => name.includes('.before-'))

/** More than one page of them. */
async function write(): Promise<void> {
  await using store = await open()
  const letters = store.collection<Letter>(SPEC)
  await letters.insertMissing(
    Array.from({ length: 600 }, (_, i) => ({ _id: `l_${String(i).padStart(3, '0')}`, text: `رسالة ${i}`, sentAt: new Date(i), pages: i })),
  )
}

function versions(of = file): unknown {
  const database = new DatabaseSync(of, { readOnly: true })
  try {
    return Object.fromEntries(
      database
        .prepare('SELECT kind, version FROM schema_versions')
        .all()
        .map(({ kind, version }) => [kind, version]),
    )
  } finally {
    database.close()
  }
}

it('waits while another process reads the file, because the copy would lack what is in the log', async () => {
  await write()
  {
    using writer = new DatabaseSync(file)
    using reader = new DatabaseSync(file, { readOnly: true })
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM documents_letters').get()
    writer.exec(`INSERT INTO documents_letters SELECT 'l_last', doc FROM documents_letters LIMIT 1`)
    await expect(open([FIRST])).rejects.toThrow(/is being read by another process/)
    expect(copies()).toEqual([])
  }
  await using _store = await open([FIRST])
  using copy = new DatabaseSync(join(folder, copies()[0]!), { readOnly: true })
  expect(copy.prepare('SELECT count(*) AS count FROM documents_letters').get()).toEqual({ count: 601 })
})

it('brings every document through all steps, keeps a copy of the file as it was, and does it once', async () => {
  await write()
  for (const _ of ['first start', 'second start']) {
    await using store = await open([FIRST, SECOND])
    const letters = store.collection<Letter>(SPEC)
    expect(await letters.findOne({ _id: 'l_599' })).toEqual({
      _id: 'l_599',
      text: 'رسالة 599',
      sentAt: new Date(599),
      sheets: 599,
      to: 'nobody',
    })
    expect(await letters.findOne({ sentAt: new Date(300) })).toMatchObject({ _id: 'l_300', sheets: 300 })
    expect(await letters.find({ _id: { $gt: '' } }, { limit: 1_000 })).toHaveLength(600)
  }
  expect(versions()).toEqual({ letters: 3, others: 1 })
  expect(copies()).toHaveLength(1)
  const copy = new DatabaseSync(join(folder, copies()[0]!), { readOnly: true })
  expect(JSON.parse(String(copy.prepare(`SELECT doc FROM documents_letters WHERE id = 'l_599'`).get()?.doc))).toMatchObject({ pages: 599 })
  copy.close()
})

it('goes from the version that is noted, and copies nothing where nothing changes', async () => {
  await write()
  for (const migrations of [[FIRST], [FIRST, SECOND]]) {
    await using store = await open(migrations)
    await store.ping(AbortSignal.timeout(30_000))
  }
  expect(versions()).toEqual({ letters: 3, others: 1 })
  expect(copies()).toHaveLength(2)
  await (await open([FIRST, SECOND]))[Symbol.asyncDispose]()
  expect(copies()).toHaveLength(2)
})

it('changes nothing when a step fails in the middle', async () => {
  await write()
  const failing: Migration = {
    phase: 'expand',
    convert(letter) {
      if (letter._id === 'l_400') throw new Error('a letter that no step knows')
      return SECOND.convert(letter)
    },
  }
  await expect(open([failing])).rejects.toThrow('a letter that no step knows')
  await using store = await open()
  const letters = store.collection<Letter>(SPEC)
  expect(await letters.findOne({ _id: 'l_000' })).not.toHaveProperty('to')
})

it('refuses documents of a newer version by the name of their kind, and leaves them', async () => {
  await write()
  await (await open([FIRST, SECOND]))[Symbol.asyncDispose]()
  await expect(open([FIRST])).rejects.toThrow(
    /has documents of the kind letters in version 3; this program knows 2\. Start a newer version/,
  )
  expect(versions()).toEqual({ letters: 3, others: 1 })
})

it('notes the present versions in a file that is new', async () => {
  await (await open([FIRST]))[Symbol.asyncDispose]()
  expect(versions()).toEqual({ letters: 2, others: 1 })
  expect(existsSync(file) && copies()).toEqual([])
})

it('takes no migrations of a kind that is not declared', () => {
  const declare = (store: Parameters<Parameters<typeof collectKinds>[0]>[0]) => store.collection(SPEC)
  expect(collectKinds(declare, { letters: [FIRST] })).toEqual([{ name: 'letters', migrations: [FIRST] }])
  expect(() => collectKinds(declare, { leters: [FIRST] })).toThrow('there are migrations of leters')
})
