import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, rmSync, statSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { silentLog } from '../../process/log.ts'
import { Unfit } from '../../process/opening.ts'
import { DataFolder } from './data-folder.ts'
import { Connection, FileLock, prepareFile } from './database.ts'
import { openSqliteDocumentStore } from './documents/document-store.ts'
import { DOCUMENT_FILE } from './documents/tables.ts'
import { markOfFile } from './store-mark.ts'

const WRITE_UNTIL_KILLED = fileURLToPath(new URL('./__fixtures__/write-until-killed.ts', import.meta.url))

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kis-database-'))
  file = join(folder, 'inner', 'documents.sqlite')
})
afterEach(() => rm(folder, { recursive: true }))

const open = () => openSqliteDocumentStore({ file, log: silentLog })

function run(sql: string): void {
  const database = new DatabaseSync(file)
  database.exec(sql)
  database.close()
}

it('a file is open in one store of a process at a time', async () => {
  const first = await open()
  await expect(open()).rejects.toThrow(/is in use/)
  await first[Symbol.asyncDispose]()
  await using again = await open()
  await again.ping(AbortSignal.timeout(30_000))
})

it('a file whose creation was interrupted is still new, so that no other file is missed beside it', async () => {
  const own = { id: 'inst_1' }
  await mkdir(dirname(file))
  {
    using lock = new FileLock(file)
    const cutOff = {
      ...own,
      get id(): string {
        throw new Error('cut off')
      },
    }
    expect(() => prepareFile(file, { kind: DOCUMENT_FILE, lock, installation: cutOff })).toThrow('cut off')
  }
  expect(statSync(file).size).toBeGreaterThan(0)
  const other = join(dirname(file), 'other.sqlite')
  const files = [file, other].map((path) => ({ path, schemaVersion: DOCUMENT_FILE.schemaVersion, isDerived: false }))
  const folderOf = () =>
    new DataFolder({
      files,
      readInstallationId: () => null,
      newId: () => 'inst_2',
    })
  expect(await folderOf().inspect()).toMatchObject({ installation: { id: 'inst_2' }, lost: [] })
  {
    await using store = await openSqliteDocumentStore({ file, installation: own, log: silentLog })
    await store.ping(AbortSignal.timeout(30_000))
  }
  expect(markOfFile(file)).toMatchObject({ mark: { id: 'inst_1' }, version: DOCUMENT_FILE.schemaVersion })
  expect(await folderOf().inspect()).toMatchObject({ installation: { id: 'inst_1' }, lost: [] })
})

it('a file whose creation was interrupted before its first commit is still new', async () => {
  await mkdir(dirname(file))
  const source = join(folder, 'source.sqlite')
  using database = new DatabaseSync(source)
  // The rows are so large that SQLite writes to the file before the commit.
  database.exec('PRAGMA cache_size=10; BEGIN; CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(1000000))')
  for (const ending of ['', '-journal']) copyFileSync(`${source}${ending}`, `${file}${ending}`)
  const files = [file, join(folder, 'other.sqlite')].map((path) => ({ path, schemaVersion: 1, isDerived: false }))
  const looking = new DataFolder({ files, readInstallationId: () => null, newId: () => 'inst_2' })
  expect(await looking.inspect()).toMatchObject({ installation: { id: 'inst_2' }, lost: [] })
  await using store = await open()
  await store.ping(AbortSignal.timeout(30_000))
})

it('a file that another process has open is refused immediately, and is free when that process is killed', async () => {
  await (await open())[Symbol.asyncDispose]()
  const child = spawn(process.execPath, [WRITE_UNTIL_KILLED, file, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    await once(child.stdout, 'data')
    child.stdout.resume()
    await expect(open()).rejects.toThrow(/is in use: one process opens it at a time/)
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  await using store = await open()
  await store.ping(AbortSignal.timeout(30_000))
})

it('a process killed while it opens the file of a killed one misses no log at the next start', async () => {
  await (await open())[Symbol.asyncDispose]()
  const child = spawn(process.execPath, [WRITE_UNTIL_KILLED, file, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  child.stdout.resume()
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(existsSync(`${file}-wal`)).toBe(true)
  for (const _ of ['killed after its first step', 'started again']) {
    using lock = new FileLock(file)
    expect(lock.missingLog).toBe(null)
    prepareFile(file, { kind: DOCUMENT_FILE, lock })
  }
  rmSync(`${file}-wal`, { force: true })
  await using store = await open()
  await store.ping(AbortSignal.timeout(30_000))
})

it('a store that writes to the end is closed in order, and its log exists until that is recorded', async () => {
  await (await open())[Symbol.asyncDispose]()
  {
    using lock = new FileLock(file)
    using last = new Connection(file, { readOnly: false })
    last.database.prepare('SELECT 1 FROM sqlite_schema').get()
    const writer = new Connection(file, { readOnly: false })
    writer.database.exec('CREATE TABLE late (n); BEGIN IMMEDIATE; INSERT INTO late VALUES (1)')
    lock.noteOpen()
    writer.database.exec('COMMIT')
    writer[Symbol.dispose]()
    expect(existsSync(`${file}-wal`)).toBe(true)
    lock.noteClosed(last.database)
  }
  expect(existsSync(`${file}-wal`)).toBe(false)
  using lock = new FileLock(file)
  expect(lock.missingLog).toBe(null)
})

it('a file of a newer version is refused and unchanged', async () => {
  await (await open())[Symbol.asyncDispose]()
  run('PRAGMA user_version=2')
  await expect(open()).rejects.toThrow(/schema version 2; this program knows 1/)
  run('PRAGMA user_version=1')
  await using store = await open()
  await store.ping(AbortSignal.timeout(30_000))
})

it('a file of another kind is refused', async () => {
  await (await open())[Symbol.asyncDispose]()
  run('PRAGMA application_id=7')
  await expect(open()).rejects.toThrow(/not the file of a document store/)
  await rm(file)
  await writeFile(file, 'something else that is long enough to be read as a header of a file'.repeat(50))
  await expect(open()).rejects.toThrow(/is corrupted \(file is not a database\)/)
})

it('distinguishes storage that may recover from errors that waiting cannot fix', async () => {
  await writeFile(join(folder, 'inner'), '')
  await expect(open()).rejects.toMatchObject({ problems: [expect.stringMatching(/the folder of .* cannot be created: ENOTDIR|EEXIST/)] })
  await rm(join(folder, 'inner'))
  await mkdir(`${file}.lock`, { recursive: true })
  await expect(open()).rejects.toMatchObject({
    problems: [expect.stringContaining('.lock cannot be opened: unable to open database file')],
  })
  await rm(`${file}.lock`, { recursive: true })
  await mkdir(file)
  await expect(open()).rejects.toBeInstanceOf(Unfit)
  await rm(file, { recursive: true })
  await using store = await open()
  await store.ping(AbortSignal.timeout(30_000))
  await expect(open()).rejects.not.toBeInstanceOf(Unfit)
})
