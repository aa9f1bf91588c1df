import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { ServiceProcess } from '../../support/processes/service.ts'

const ROOT = new URL('../../..', import.meta.url).pathname
const READY_MS = 60_000
const END_MS = 30_000

describe.skipIf(process.platform === 'win32')('npm start', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)(
    'ends the service when npm receives %s, and releases its data directory',
    async (signal) => {
      const folder = mkdtempSync(join(tmpdir(), 'kis-npm-'))
      const own = { HOME: folder, KIS_DATA_DIR: join(folder, 'data'), KIS_PORTAL: 'off' }
      const env = { PATH: process.env.PATH!, HOST: '127.0.0.1', PORT: '0', ...own }
      // A group of its own, so that nothing of it is left behind whatever happens.
      const npm = spawn('npm', ['start'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'], detached: true })
      const hasEnded = once(npm, 'exit')
      try {
        let address: string | undefined
        createInterface(npm.stdout).on('line', (line) => {
          address ??= /^ready (http.*)$/.exec(line)?.[1]
        })
        await eventually(() => address !== undefined, READY_MS)
        const isAlive = () =>
          fetch(`${address}/healthz`).then(
            ({ ok }) => ok,
            () => false,
          )
        expect(await isAlive()).toBe(true)
        // A terminal gives Ctrl-C to the whole group; npm by itself leaves it to the others.
        process.kill(signal === 'SIGINT' ? -npm.pid! : npm.pid!, signal)
        await hasEnded
        await eventually(async () => !(await isAlive()), END_MS)
        await eventually(() => !isGroupAlive(npm.pid!), END_MS)
        const next = await ServiceProcess.start([], env)
        expect(await next.end()).toBe(0)
      } finally {
        if (isGroupAlive(npm.pid!)) process.kill(-npm.pid!, 'SIGKILL')
        rmSync(folder, { recursive: true, force: true })
      }
    },
    180_000,
  )
})

function isGroupAlive(pid: number): boolean {
  try {
    return process.kill(-pid, 0)
  } catch {
    return false
  }
}
