import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'kis-clients')
/** A cold cache on a busy machine. Where a registry does not answer, its client notices within seconds. */
const INSTALL_MS = 5 * 60_000

export const run = promisify(execFile)

/** A folder that `install` has filled, once a machine; or why there is none. */
export async function installed(
  name: string,
  install: (folder: string) => Promise<void>,
): Promise<{ readonly folder: string } | { readonly reason: string }> {
  const place = join(CACHE, name)
  if (existsSync(place)) return { folder: place }
  // Made beside its place, and moved there whole: another run may be making it, too.
  const building = `${place}-${process.pid}`
  try {
    await mkdir(CACHE, { recursive: true })
    await install(building)
    await rename(building, place)
    return { folder: place }
  } catch (error) {
    if (existsSync(place)) return { folder: place }
    return { reason: `${name} cannot be set up here: ${(error as Error).message.split('\n')[0]}` }
  } finally {
    await rm(building, { recursive: true, force: true })
  }
}

/** Installs npm packages, given with their versions. No script of theirs runs. */
export async function installNpm(folder: string, dependencies: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }))
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries=1', '--fetch-timeout=15000', '--prefix', folder]
  await run('npm', ['install', ...flags], { cwd: folder, timeout: INSTALL_MS })
}

/** Makes a Python environment with these packages. */
export async function installPython(folder: string, packages: readonly string[]): Promise<void> {
  await run('python3', ['-m', 'venv', folder], { timeout: INSTALL_MS })
  const install = [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--no-compile',
    '--disable-pip-version-check',
    '--retries',
    '1',
    '--timeout',
    '10',
    ...packages,
  ]
  await run(join(folder, 'bin', 'python'), install, { timeout: INSTALL_MS })
}
