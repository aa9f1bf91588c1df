import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { checkMark, noteSiblings } from '../../subgraphs/common/adapters/sqlite/store-mark.ts'
import { keptSecrets } from '../../subgraphs/common/identity/kept-secret.ts'
import { soaking } from '../../test/support/soak.ts'
import { rotateKeptSecret } from '../maintenance/rotate-kept-secret.ts'
import { backUp } from './back-up.ts'
import { restore } from './restore.ts'
import { refuseHalfRestored } from './restoring.ts'

const SCRIPT = fileURLToPath(new URL('../../test/support/processes/killed-at-step.mjs', import.meta.url))
const NAMES = ['billing.sqlite', 'inference.sqlite', 'knowledge.sqlite', 'blobs.sqlite']
/** One step in this many is met, unless all are. */
const EVERY = soaking ? 1 : 8

let folder: string
let data: string
let restored: string
let archive: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kis-killed-'))
  data = join(folder, 'data')
  restored = join(folder, 'restored')
  archive = join(folder, 'archive.kis')
  mkdirSync(data)
  for (const name of NAMES) {
    using file = new DatabaseSync(join(data, name))
    file.exec('PRAGMA journal_mode=WAL')
    checkMark(file, name, { id: 'inst_one', secretFingerprint: 'abc' })
  }
  for (const name of NAMES) noteSiblings(join(data, name), NAMES)
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Runs the call in a process that dies before its Nth change. Gives whether it died. */
function diesAt(step: number, call: readonly [module: string, name: string], options: object): boolean {
  const { signal, status, stderr } = spawnSync(process.execPath, ['--no-warnings', SCRIPT, ...call, JSON.stringify(options), String(step)])
  if (signal !== 'SIGKILL' && status !== 0) throw new Error(stderr.toString())
  return signal === 'SIGKILL'
}

function countSteps(call: readonly [module: string, name: string], options: object): number {
  return Number(execFileSync(process.execPath, ['--no-warnings', SCRIPT, ...call, JSON.stringify(options), '0']))
}

/** Another choice each time, unless all are met. */
function* choose(steps: number): Generator<number> {
  for (let step = 1 + Math.floor(Math.random() * EVERY); step <= steps; step += EVERY) yield step
}

const backupOptions = () => ({ dataDirectory: data, file: archive, withSecret: null })
const restoreOptions = () => ({ dataDirectory: restored, file: archive, since: [], check: false })
const passphrase = () => Promise.reject(new Error('there is no secret'))

it('a restore that is killed before any of its steps leaves nothing, a folder that no start takes, or everything', async () => {
  const call = [import.meta.resolve('./restore.ts'), 'restore'] as const
  await backUp({ ...backupOptions(), since: undefined })
  const steps = countSteps(call, restoreOptions())
  expect(steps).toBeGreaterThan(20)
  const seen = new Set<string>()
  for (const step of choose(steps)) {
    rmSync(restored, { recursive: true, force: true })
    expect(diesAt(step, call, restoreOptions())).toBe(true)
    const placed = existsSync(restored) ? readdirSync(restored).filter((name) => NAMES.includes(name)) : []
    const isMarked = existsSync(join(restored, 'restoring', 'unfinished'))
    if (isMarked) expect(() => refuseHalfRestored(restored)).toThrow(/has not ended/)
    else expect([0, NAMES.length]).toContain(placed.length)
    seen.add(isMarked ? 'marked' : placed.length === 0 ? 'nothing' : 'everything')
    const again = restore({ ...restoreOptions(), passphrase })
    if (!isMarked && placed.length > 0) await expect(again).rejects.toThrow(/is not empty/)
    else await again
    const now = readdirSync(restored).filter((name) => name !== 'restoring')
    expect(now.sort(), `at step ${step}`).toEqual([...NAMES].sort())
  }
  if (soaking) expect([...seen].sort()).toEqual(['everything', 'marked', 'nothing'])
}, 600_000)

it('a backup that is killed before any of its steps leaves no archive or a whole one, and the next one is made', async () => {
  const call = [import.meta.resolve('./back-up.ts'), 'backUp'] as const
  const steps = countSteps(call, backupOptions())
  expect(steps).toBeGreaterThan(20)
  for (const step of choose(steps)) {
    rmSync(archive, { force: true })
    expect(diesAt(step, call, backupOptions())).toBe(true)
    if (!existsSync(archive)) await backUp({ ...backupOptions(), since: undefined })
    expect((await restore({ ...restoreOptions(), check: true, passphrase })).files).toHaveLength(NAMES.length)
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([])
  }
}, 600_000)

it('a rotation of the secret that is killed before any of its steps leaves secrets with which the service starts, and is repeated', () => {
  const call = [import.meta.resolve('../maintenance/rotate-kept-secret.ts'), 'rotateKeptSecret'] as const
  const begin = () => {
    rmSync(data, { recursive: true })
    return keptSecrets(data).current
  }
  begin()
  const steps = countSteps(call, { dataDirectory: data })
  expect(steps).toBeGreaterThan(8)
  for (let step = 1; step <= steps; step++) {
    const first = begin()
    expect(diesAt(step, call, { dataDirectory: data })).toBe(true)
    const left = keptSecrets(data)
    expect([left.current, left.previous], `at step ${step}`).toContainEqual(first)
    if (left.previous === null) rotateKeptSecret({ dataDirectory: data })
    else expect(() => rotateKeptSecret({ dataDirectory: data })).toThrow('A rotation is under way')
    expect(keptSecrets(data).previous, `at step ${step}`).toEqual(first)
  }
}, 120_000)
