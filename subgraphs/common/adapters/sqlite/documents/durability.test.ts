import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../../process/log.ts'
import { openSqliteDocumentStore } from './document-store.ts'

const WRITE_UNTIL_KILLED = fileURLToPath(new URL('../__fixtures__/write-until-killed.ts', import.meta.url))
const WRITE_TO_A_FULL_DISK = fileURLToPath(new URL('../__fixtures__/write-to-a-full-disk.ts', import.meta.url))
const PRLIMIT = '/usr/bin/prlimit'
/** Each test starts four processes, each of which takes seconds on a busy machine. */
const TIMEOUT_MS = 120_000

describe('Durability of acknowledged writes', { timeout: TIMEOUT_MS }, () => {
  let folder: string
  let file: string
  let child: ChildProcessByStdio<Writable, Readable, null> | undefined

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kis-durability-'))
    file = join(folder, 'documents.sqlite')
  })
  afterEach(async () => {
    if (child && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    await rm(folder, { recursive: true })
  })

  function start(command: string, ...args: string[]): AsyncIterableIterator<string> {
    child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    return createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  }

  it('survives kill -9 in the middle of writing, and the lock does not', async () => {
    const inserted: string[] = []
    let counted = 0
    for (const { round, lines } of [400, 1_500, 50].map((lines, round) => ({ round, lines }))) {
      const output = start(process.execPath, WRITE_UNTIL_KILLED, file, String(round))
      let seen = 0
      for await (const line of output) {
        const [what, value = ''] = line.split(' ')
        if (what === 'insert') inserted.push(value)
        else counted = Math.max(counted, Number(value))
        // Lines that were written before the kill are still read: they were acknowledged, too.
        if (++seen === lines) child!.kill('SIGKILL')
      }
      // The output of the process ends before its lock is free.
      if (child!.exitCode === null && child!.signalCode === null) await once(child!, 'exit')
      await using store = await openSqliteDocumentStore({ file, log: silentLog })
      const items = store.collection<{ _id: string; code: string; n?: number }>({
        name: 'items',
        indexes: [{ fields: ['code'], unique: true }],
      })
      const found = await Promise.all(inserted.map(async (code) => (await items.findOne({ code }))?._id))
      expect(found).toEqual(inserted)
      expect((await items.findOne({ _id: 'counter' }))?.n).toBeGreaterThanOrEqual(counted)
    }
    using integrity = new DisposableStack()
    const database = new DatabaseSync(file)
    integrity.defer(() => database.close())
    expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
    expect(inserted.length).toBeGreaterThan(100)
    expect(counted).toBeGreaterThan(100)
  })

  it.skipIf(!existsSync(PRLIMIT))('holds on a full disk, and later writes work again (needs prlimit)', async () => {
    const output = start(PRLIMIT, `--fsize=${2 * 1024 * 1024}:unlimited`, process.execPath, WRITE_TO_A_FULL_DISK, file)
    expect((await output.next()).value).toBe('full service_unavailable unfit')
    execFileSync(PRLIMIT, [`--pid=${child!.pid}`, '--fsize=unlimited:unlimited'])
    child!.stdin.end('go on\n')
    const { acknowledged, ...rest } = JSON.parse(String((await output.next()).value))
    expect(acknowledged).toBeGreaterThan(100)
    expect(rest).toEqual({ found: acknowledged, failedAndFound: 0, failedLater: 0 })
    expect((await once(child!, 'exit'))[0]).toBe(0)
  })
})
