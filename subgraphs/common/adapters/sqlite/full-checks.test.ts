import { randomBytes } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { CheckedFile } from '../../documents/verify-files.ts'
import { silentLog } from '../../process/log.ts'
import { openSqliteDocumentStore } from './documents/document-store.ts'
import { DOCUMENT_FILE } from './documents/tables.ts'
import { FileChecks } from './full-checks.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kis-files-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const open = (name: string) => openSqliteDocumentStore({ file: join(folder, name), log: silentLog })
const openItems = (store: Awaited<ReturnType<typeof open>>) =>
  store.collection<{ _id: string; code: string }>({ name: 'items', indexes: [{ fields: ['code'] }] })

async function createDatabase(name: string): Promise<string> {
  await using store = await open(name)
  await openItems(store).insertMissing(Array.from({ length: 1_000 }, (_, i) => ({ _id: `id_${i}`, code: `c${i}`.repeat(20) })))
  return join(folder, name)
}

async function checked(checks: FileChecks): Promise<readonly CheckedFile[]> {
  const files: CheckedFile[] = []
  for (let after: string | null = null; ; ) {
    const step = await checks.check(after)
    files.push(...step.files)
    if (step.next === null) return files
    after = step.next
  }
}

it('finds no fault in files that are being written, and reports an overwritten page', async () => {
  const whole = await createDatabase('a.sqlite')
  const broken = await createDatabase('b.sqlite')
  const page = 8
  expect(statSync(broken).size).toBeGreaterThan((page + 1) * DOCUMENT_FILE.pageSize)
  const descriptor = openSync(broken, 'r+')
  writeSync(descriptor, randomBytes(DOCUMENT_FILE.pageSize), 0, DOCUMENT_FILE.pageSize, page * DOCUMENT_FILE.pageSize)
  closeSync(descriptor)

  await using store = await open('a.sqlite')
  await using checks = new FileChecks([whole, broken])
  const writing = openItems(store).insertOne({ _id: 'later', code: 'later' })
  const [first, second] = await checked(checks)
  await writing
  expect(first).toEqual({ name: 'a.sqlite', problems: [] })
  expect(second!.name).toBe('b.sqlite')
  expect(second!.problems.length).toBeGreaterThan(0)
  expect(second!.problems.length).toBeLessThanOrEqual(20)
  // Later calls check the file in its current state.
  await openItems(store).insertOne({ _id: 'last', code: 'last' })
  expect((await checks.check(null)).files).toEqual([first])
})

it('reports nothing without files and for other files, and refuses the cursor of another list', async () => {
  expect(await new FileChecks([]).check(null)).toEqual({ files: [], next: null })
  await using checks = new FileChecks([join(folder, 'absent.sqlite')])
  expect(await checked(checks)).toEqual([{ name: 'absent.sqlite', problems: ['unable to open database file'] }])
  await expect(checks.check('../secret')).rejects.toMatchObject({ code: 'invalid_request' })
})
