import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { zstdCompressSync } from 'node:zlib'
import { Header } from 'tar/header'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkMark, noteSiblings } from '../../subgraphs/common/adapters/sqlite/store-mark.ts'
import { fingerprintSecret } from '../../subgraphs/common/identity/installation.ts'
import { parseSecret } from '../../subgraphs/common/identity/secrets.ts'
import { type BackupOptions, backUp } from './back-up.ts'
import { type Manifest, PIECE_BYTES, sha256 } from './manifest.ts'
import { type RestoreOptions, restore } from './restore.ts'

const NAMES = ['billing', 'inference', 'knowledge', 'blobs'].map((name) => `${name}.sqlite`)
const SECRET = 'a secret of an installation, long enough'
const PASSPHRASE = 'twelve or more characters'
const INSTALLATION = { id: 'inst_one', secretFingerprint: fingerprintSecret(parseSecret(SECRET)) }

let folder: string
let data: string
let restored: string
let archive: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kis-backups-'))
  data = join(folder, 'data')
  restored = join(folder, 'restored')
  archive = join(folder, 'archive.kis')
  mkdirSync(data)
  writeFileSync(join(data, 'secret'), SECRET)
  for (const name of NAMES) inFile(name, (file) => file.exec('CREATE TABLE number (value INTEGER); INSERT INTO number VALUES (0)'))
  for (const name of NAMES) noteSiblings(join(data, name), NAMES)
})
afterEach(() => rmSync(folder, { recursive: true }))

function inFile(name: string, change: (database: DatabaseSync) => void): void {
  using database = new DatabaseSync(join(data, name))
  database.exec('PRAGMA journal_mode=WAL')
  checkMark(database, name, INSTALLATION)
  change(database)
}

/** Bytes that do not compress, in pages that stay where they are. */
function grow(name: string, mebibytes: number): void {
  inFile(name, (file) => {
    file.exec('CREATE TABLE IF NOT EXISTS bulk (bytes BLOB)')
    file.exec('BEGIN')
    for (let i = 0; i < mebibytes * 4; i++) file.exec('INSERT INTO bulk VALUES (randomblob(262144))')
    file.exec('COMMIT')
  })
}

const makeBackup = (options: Partial<BackupOptions> = {}) =>
  backUp({ dataDirectory: data, file: archive, since: undefined, withSecret: null, ...options })
const restoreIt = (options: Partial<RestoreOptions> = {}) =>
  restore({ dataDirectory: restored, file: archive, since: [], check: false, passphrase: async () => PASSPHRASE, ...options })

function numberIn(folderOf: string, name: string): number {
  using database = new DatabaseSync(join(folderOf, name))
  expect(database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
  return (database.prepare('SELECT value FROM number').get() as { value: number }).value
}

it('shows all files at one moment, though another process writes them one after the other without a pause', async () => {
  // Each number goes to the first file, and then to each of the others. At no moment is a later file ahead.
  const script = `
    const { DatabaseSync } = require('node:sqlite')
    const files = process.argv.slice(1).map((path) => new DatabaseSync(path, { timeout: 30_000 }))
    console.log('begun')
    for (let value = 1; ; value++) for (const file of files) file.exec('UPDATE number SET value = ' + value)`
  const writer = spawn(process.execPath, ['--no-warnings', '-e', script, ...NAMES.map((name) => join(data, name))])
  await once(writer.stdout, 'data')
  try {
    for (let round = 0; round < 5; round++) {
      await makeBackup()
      await restoreIt()
      const values = NAMES.map((name) => numberIn(restored, name))
      expect(values).toEqual([...values].sort((a, b) => b - a))
      expect(values[0]! - values.at(-1)!).toBeLessThanOrEqual(1)
      for (const path of [restored, archive]) rmSync(path, { recursive: true })
    }
  } finally {
    writer.kill('SIGKILL')
    await once(writer, 'exit')
  }
  // The next start reports a log that is gone.
  await makeBackup()
  expect(readdirSync(data).filter((name) => name.endsWith('-wal'))).toHaveLength(NAMES.length)
}, 60_000)

it('what is in the log only is in the backup, and a log that is all in its file stays beside it', async () => {
  const script = `
    const { DatabaseSync } = require('node:sqlite')
    const [one, two] = process.argv.slice(1).map((path) => new DatabaseSync(path))
    one.exec('UPDATE number SET value = 7')
    two.exec('UPDATE number SET value = 8; PRAGMA wal_checkpoint(PASSIVE)')
    process.kill(process.pid, 'SIGKILL')`
  await once(spawn(process.execPath, ['--no-warnings', '-e', script, ...NAMES.slice(0, 2).map((name) => join(data, name))]), 'exit')
  await makeBackup()
  expect(readdirSync(data)).toEqual(expect.arrayContaining(NAMES.slice(0, 2).map((name) => `${name}-wal`)))
  await restoreIt()
  expect(NAMES.map((name) => numberIn(restored, name))).toEqual([7, 8, 0, 0])
})

it('a backup since an earlier one has only what has changed, and finds that one beside it or where it is told', async () => {
  grow('blobs.sqlite', 8)
  const first = await makeBackup()
  inFile('billing.sqlite', (file) => file.exec('UPDATE number SET value = 1'))
  const since = join(folder, 'since.kis')
  expect((await makeBackup({ file: since, since: archive })).bytes).toBeLessThan(first.bytes / 20)
  grow('blobs.sqlite', 2)
  const third = join(folder, 'third.kis')
  const last = await makeBackup({ file: third, since })
  expect(last.bytes).toBeGreaterThan(2 * PIECE_BYTES)
  expect(last.bytes).toBeLessThan(first.bytes / 2)
  await restoreIt({ file: third })
  expect(readFileSync(join(restored, 'blobs.sqlite')).subarray(4096)).toEqual(readFileSync(join(data, 'blobs.sqlite')).subarray(4096))
  expect(numberIn(restored, 'billing.sqlite')).toBe(1)

  mkdirSync(join(folder, 'away'))
  const away = join(folder, 'away', 'renamed.kis')
  writeFileSync(away, readFileSync(archive))
  rmSync(archive)
  await expect(restoreIt({ file: third, check: true })).rejects.toThrow(/archive\.kis cannot be read/)
  await expect(restoreIt({ file: third, check: true, since: [away] })).rejects.toThrow(
    /is another backup than the one that .*third\.kis was made since/,
  )
  await restoreIt({ file: third, check: true, since: [since, away] })
})

describe('the secret', () => {
  const withSecret = { passphrase: PASSPHRASE, secret: undefined }

  it('is in the archive only when it is asked for, and opens with its passphrase alone', async () => {
    await makeBackup({ withSecret })
    expect(readFileSync(archive).includes(SECRET)).toBe(false)
    await expect(restoreIt({ passphrase: async () => 'another passphrase' })).rejects.toThrow(/passphrase is not the one/)
    expect(existsSync(restored)).toBe(false)
    await restoreIt()
    expect(readFileSync(join(restored, 'secret'), 'utf8')).toBe(SECRET)
    expect(statSync(join(restored, 'secret')).mode & 0o077).toBe(0)

    await makeBackup({ file: join(folder, 'without.kis') })
    await restoreIt({ file: join(folder, 'without.kis'), dataDirectory: join(folder, 'other'), passphrase: () => Promise.reject() })
    expect(readdirSync(join(folder, 'other')).sort()).toEqual([...NAMES].sort())
  })

  it('is refused when it is not that of the data', async () => {
    await expect(makeBackup({ withSecret: { ...withSecret, secret: 'another secret, also long enough to be one' } })).rejects.toThrow(
      /another one than that of the data/,
    )
    expect(existsSync(archive)).toBe(false)
  })
})

describe('a backup', () => {
  it('replaces no file, and removes what one that was killed has left', async () => {
    await makeBackup()
    await expect(makeBackup()).rejects.toThrow(/is there already/)
    rmSync(archive)
    for (const name of [`${archive}.0123456789ab.part`, `${archive}.0123456789ab-copy.part`]) writeFileSync(name, 'half')
    await makeBackup()
    expect(readdirSync(folder).sort()).toEqual(['archive.kis', 'data'])
  })

  it('of a folder that is not whole, is damaged or is not there is refused', async () => {
    const refuses = async (pattern: RegExp) => {
      await expect(makeBackup()).rejects.toThrow(pattern)
      expect(readdirSync(folder).filter((name) => name.startsWith('archive'))).toEqual([])
    }
    await expect(makeBackup({ dataDirectory: join(folder, 'none') })).rejects.toThrow(/has no data of the service/)
    grow('knowledge.sqlite', 1)
    const knowledge = join(data, 'knowledge.sqlite')
    const whole = readFileSync(knowledge)
    writeFileSync(knowledge, Buffer.concat([whole.subarray(0, 8192), Buffer.alloc(8192, 0x5a), whole.subarray(16_384)]))
    await refuses(/knowledge\.sqlite is damaged/)
    for (const name of [knowledge, `${knowledge}-wal`, `${knowledge}-shm`]) rmSync(name, { force: true })
    await refuses(/knowledge\.sqlite is missing/)
  })

  it('goes on without a chunk index that is damaged, and says so', async () => {
    writeFileSync(join(data, 'index.sqlite'), Buffer.alloc(8192, 0x5a))
    expect((await makeBackup()).leftOut).toEqual(['index.sqlite'])
    expect((await restoreIt()).files.map(({ name }) => name).sort()).toEqual([...NAMES].sort())
  })
})

describe('a restore', () => {
  /** Writes an archive with any entries. */
  function writeArchive(entries: readonly (readonly [path: string, bytes: Uint8Array])[]): void {
    writeFileSync(archive, '')
    for (const [path, bytes] of entries) {
      const block = Buffer.alloc(512)
      new Header({ path, size: bytes.length, type: 'File', mode: 0o600, mtime: new Date(0) }).encode(block)
      appendFileSync(archive, Buffer.concat([block, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]))
    }
  }
  const manifestEntry = (manifest: object) => {
    const bytes = Buffer.from(JSON.stringify(manifest))
    return [`manifest-${sha256(bytes)}.json`, bytes] as const
  }
  const PIECE = Buffer.alloc(1000, 'x')
  const pieceEntry = [`pieces/${sha256(PIECE)}.zst`, zstdCompressSync(PIECE)] as const
  const manifest: Manifest = {
    format: 1,
    id: 'bak_one',
    madeAt: '2026-11-24T00:00:00.000Z',
    version: '0.1.0',
    api: 'v1',
    schema: 'abc',
    installation: INSTALLATION,
    since: null,
    files: [{ name: 'billing.sqlite', bytes: 1000, schemaVersion: 1, pieces: [sha256(PIECE)] }],
    secret: null,
  }
  const fileOf = (changes: object) => ({ ...manifest, files: [{ ...manifest.files[0]!, ...changes }] })
  const hugePiece = Buffer.alloc(PIECE_BYTES + 1)

  it.each([
    { what: 'a file that is no archive', entries: () => writeFileSync(archive, 'x'.repeat(5000)), says: /is not a backup/ },
    { what: 'an empty file', entries: () => writeFileSync(archive, ''), says: /is not complete/ },
    { what: 'an archive without a manifest', entries: [pieceEntry], says: /is not complete/ },
    { what: 'a path that climbs out', entries: [['../../evil', PIECE] as const], says: /has an entry "\.\.\/\.\.\/evil"/ },
    { what: 'a name that climbs out', entries: [pieceEntry, manifestEntry(fileOf({ name: '../evil.sqlite' }))], says: /does not fit/ },
    {
      what: 'an earlier backup elsewhere',
      entries: [manifestEntry({ ...manifest, since: { id: 'bak_two', name: '../a' } })],
      says: /does not fit/,
    },
    { what: 'a piece that is not there', entries: [manifestEntry(manifest)], says: /pieces of billing\.sqlite are missing/ },
    { what: 'another size than the pieces have', entries: [pieceEntry, manifestEntry(fileOf({ bytes: 999 }))], says: /has another size/ },
    { what: 'more bytes than pieces', entries: [pieceEntry, manifestEntry(fileOf({ bytes: 1e12 }))], says: /does not fit/ },
    {
      what: 'a bomb',
      entries: [
        [`pieces/${sha256(hugePiece)}.zst`, zstdCompressSync(hugePiece)] as const,
        manifestEntry(fileOf({ pieces: [sha256(hugePiece)] })),
      ],
      says: /cannot be unpacked/,
    },
    {
      what: 'more than the disk holds, out of one piece',
      entries: [pieceEntry, manifestEntry(fileOf({ bytes: PIECE_BYTES * 1e6, pieces: Array(1e6).fill(sha256(PIECE)) }))],
      says: /has room for \d+ bytes/,
    },
    {
      what: 'another manifest than its name says',
      entries: [[manifestEntry(manifest)[0], manifestEntry(fileOf({}))[1].fill('y', 5, 6)] as const],
      says: /its manifest has another SHA-256/,
    },
    {
      what: 'a newer program',
      entries: [pieceEntry, manifestEntry({ ...manifest, version: '999.0.0', novel: 1 })],
      says: /was made by version 999\.0\.0/,
    },
    { what: 'a newer format', entries: [pieceEntry, manifestEntry({ ...manifest, format: 2 })], says: /has format 2/ },
    { what: 'a newer schema', entries: [pieceEntry, manifestEntry(fileOf({ schemaVersion: 99 }))], says: /schema version 99/ },
    {
      what: 'a costly passphrase',
      entries: [pieceEntry, manifestEntry({ ...manifest, secret: { kdf: 'scrypt-1073741824-8-1' } })],
      says: /does not fit/,
    },
  ])('of $what is refused, and leaves nothing', async ({ entries, says }) => {
    if (typeof entries === 'function') entries()
    else writeArchive(entries)
    await expect(restoreIt()).rejects.toThrow(says)
    expect(existsSync(restored) ? readdirSync(restored) : []).toEqual([])
  })

  it('of an archive that was cut or changed anywhere is refused, and leaves nothing', async () => {
    grow('blobs.sqlite', 2)
    await makeBackup()
    const whole = readFileSync(archive)
    const end = whole.length - 1024
    for (let round = 0; round < 20; round++) {
      const at = Math.floor(Math.random() * (end - 512))
      writeFileSync(archive, whole)
      truncateSync(archive, at)
      await expect(restoreIt(), `cut at ${at}`).rejects.toThrow(/is not complete/)
    }
    let refused = 0
    for (let round = 0; round < 20; round++) {
      const at = Math.floor(Math.random() * end)
      const changed = Buffer.from(whole)
      changed[at] = changed[at]! ^ 0x10
      writeFileSync(archive, changed)
      const message = await restoreIt().then(
        () => null,
        (error) => String(error.message),
      )
      if (message === null) {
        // Only between two entries nothing depends on a byte.
        for (const name of NAMES) numberIn(restored, name)
      } else {
        expect(message, `changed at ${at}`).toMatch(
          /is damaged|is not a backup|is not complete|pieces of .* are missing|does not fit|cannot be read/,
        )
        refused++
      }
      expect(message === null || !existsSync(restored) || readdirSync(restored).length === 0).toBe(true)
      rmSync(restored, { recursive: true, force: true })
    }
    expect(refused).toBeGreaterThan(10)
  }, 60_000)

  it('into a folder that has anything is refused, but for what an interrupted restore has left', async () => {
    await makeBackup()
    mkdirSync(join(restored, 'lost+found'), { recursive: true })
    writeFileSync(join(restored, 'notes.txt'), '')
    await expect(restoreIt()).rejects.toThrow(/is not empty: it has notes\.txt/)
    rmSync(join(restored, 'notes.txt'))

    writeFileSync(join(restored, 'billing.sqlite'), 'live')
    mkdirSync(join(restored, 'restoring'))
    await expect(restoreIt()).rejects.toThrow(/is not empty: it has billing\.sqlite/)
    expect(readFileSync(join(restored, 'billing.sqlite'), 'utf8')).toBe('live')

    writeFileSync(join(restored, 'restoring', 'unfinished'), '')
    writeFileSync(join(restored, 'restoring', 'blobs.sqlite'), 'half')
    await restoreIt()
    expect(readdirSync(restored).sort()).toEqual([...NAMES, 'lost+found'].sort())
    expect(numberIn(restored, 'billing.sqlite')).toBe(0)
  })
})
