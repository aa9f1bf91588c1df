import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../test/support/eventually.ts'

const CLI = fileURLToPath(new URL('.', import.meta.url))
const READY_MS = 60_000

const oldNode = findOldNode()
const missing = oldNode ? !hasBundledNode() && 'npm installs no Node 24 for this system' : 'there is no Node 20 to 23 on PATH'

describe.skipIf(missing)(`Bundled Node under ${oldNode?.version}${missing ? `: skipped because ${missing}` : ''}`, () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kis-node-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const run = (args: readonly string[], cli = CLI) => {
    const env = { HOME: folder, HOST: '127.0.0.1', PORT: '0', KIS_DATA_DIR: join(folder, 'data'), KIS_PORTAL: 'off' }
    return spawn(oldNode!.path, [join(cli, 'kis.js'), ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  }
  const startService = async () => {
    const child = run(['start'])
    const ended = once(child, 'exit')
    let address: string | undefined
    createInterface(child.stdout).on('line', (line) => {
      address ??= /^ready (http.*)$/.exec(line)?.[1]
    })
    await eventually(() => address !== undefined || child.exitCode !== null, READY_MS)
    const isAlive = () =>
      fetch(`${address}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      )
    expect(await isAlive()).toBe(true)
    return { child, ended, isAlive }
  }

  it('passes on arguments, output and exit codes', async () => {
    const help = run(['help'])
    const [said, [code]] = await Promise.all([text(help.stdout), once(help, 'exit')])
    expect([code, said]).toEqual([0, expect.stringContaining('kis start')])
    const wrong = run(['nonsense'])
    const [refusal, [wrongCode]] = await Promise.all([text(wrong.stderr), once(wrong, 'exit')])
    expect([wrongCode, refusal]).toEqual([2, expect.stringContaining('nonsense')])
  })

  it('passes on a signal once: the service ends in order', async () => {
    const { child, ended, isAlive } = await startService()
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
    expect(await isAlive()).toBe(false)
  }, 90_000)

  it('ends the service when it is killed itself', async () => {
    const { child, ended, isAlive } = await startService()
    child.kill('SIGKILL')
    await ended
    await eventually(async () => !(await isAlive()), 30_000)
  }, 90_000)

  it('explains what to do if no Node 24 is installed', async () => {
    for (const file of readdirSync(CLI).filter((name) => name.endsWith('.js'))) copyFileSync(join(CLI, file), join(folder, file))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const child = run(['start'], folder)
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect([code, said]).toEqual([1, expect.stringMatching(/needs Node 24 or newer.*Run `npm ci`.*install Node 24 yourself/)])
  })
})

/** Returns the machine's own Node, if it is too old for the service and new enough to start it. */
function findOldNode(): { readonly path: string; readonly version: string } | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((path) => path !== '' && !path.includes('node_modules'))
  for (const path of folders.map((name) => join(name, 'node')).filter(existsSync)) {
    const version = execFileSync(path, ['--version'], { encoding: 'utf8' }).trim().slice(1)
    const major = Number(version.split('.')[0])
    if (major >= 20 && major < 24) return { path, version }
  }
  return undefined
}

function hasBundledNode(): boolean {
  return existsSync(join(CLI, `../node_modules/node-${process.platform}-${process.arch}/bin/node`))
}
