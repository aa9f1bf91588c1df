import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { type Service, startEmbedded } from '../../support/processes/service.ts'

/** Modes by path below the folder, for whoever is not its owner; empty when nobody else has anything. */
function openTo(folder: string): Record<string, string> {
  const paths = ['.', ...readdirSync(folder, { recursive: true, encoding: 'utf8' })]
  const modes = paths.map((path) => [path, statSync(join(folder, path)).mode & 0o777] as const)
  return Object.fromEntries(modes.filter(([, mode]) => mode & 0o077).map(([path, mode]) => [path, mode.toString(8)]))
}

it.skipIf(process.platform === 'win32')(
  'the data directory is private to its user, for any umask, and an open one of an earlier start is closed',
  async () => {
    const rootFolder = mkdtempSync(join(tmpdir(), 'kis-modes-'))
    const folder = join(rootFolder, 'data')
    const start = () => startEmbedded({ folder: rootFolder, under: () => ['/bin/sh', '-c', 'umask 0; exec "$@"', 'sh'] })
    const whileRunning = async (inspect: (service: Service) => unknown) => {
      const service = await start()
      try {
        await inspect(service)
      } finally {
        await service.close()
      }
    }
    try {
      await whileRunning(() => {
        expect(readdirSync(folder)).toEqual(
          expect.arrayContaining(['secret', 'billing.sqlite', 'billing.sqlite-wal', 'billing.sqlite.lock']),
        )
        expect(openTo(folder)).toEqual({})
      })
      expect(openTo(folder)).toEqual({})

      chmodSync(folder, 0o755)
      for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o644)
      await whileRunning(() => expect(openTo(folder)).toEqual({}))

      // A folder that is not the service's alone is left to its owner, who is told.
      chmodSync(folder, 0o755)
      for (const name of ['notes.txt', 'billing.sqlite']) writeFileSync(join(folder, name), '', { flag: 'a' })
      for (const name of ['notes.txt', 'billing.sqlite']) chmodSync(join(folder, name), 0o644)
      await whileRunning(async (service) => {
        expect(openTo(folder)).toEqual({ '.': '755', 'notes.txt': '644' })
        await eventually(() => service.processes.get('all')!.errors.includes(`"path":${JSON.stringify(folder)}`))
      })
    } finally {
      rmSync(rootFolder, { recursive: true, force: true })
    }
  },
  180_000,
)
