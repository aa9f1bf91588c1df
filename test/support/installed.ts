import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'kis-clients')
/** A cold cache on a busy machine. Where a registry does not answer, its client notices within seconds. */
const INSTALL_MS = 5 * 60_000
const MAX_REASON_LENGTH = 200

export const run = promisify(execFile)

export type Modules = { readonly modules: string } | { readonly reason: string }
export type Python = { readonly python: string } | { readonly reason: string }

/** A `node_modules` with npm packages, installed once a machine; or why there is none. No script of theirs runs. */
export async function modulesWith(dependencies: Readonly<Record<string, string>>): Promise<Modules> {
  const folderPath = await installed('npm', dependencies, async (folder) => {
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }))
    const network = ['--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--fetch-timeout=15000']
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', ...network, '--prefix', folder]
    await run('npm', ['install', ...flags], { cwd: folder, timeout: INSTALL_MS })
  })
  return 'folder' in folderPath ? { modules: join(folderPath.folder, 'node_modules') } : folderPath
}

/** A Python that has packages, such as `openai==3.54.0`, installed once a machine; or why there is none. */
export async function pythonWith(...packages: readonly string[]): Promise<Python> {
  const folderPath = await installed('python', packages, async (folder) => {
    await run('python3', ['-m', 'venv', folder], { timeout: INSTALL_MS })
    const quiet = ['--quiet', '--no-compile', '--disable-pip-version-check', '--retries', '1', '--timeout', '10']
    await run(join(folder, 'bin', 'python'), ['-m', 'pip', 'install', ...quiet, ...packages], { timeout: INSTALL_MS })
  })
  return 'folder' in folderPath ? { python: join(folderPath.folder, 'bin', 'python') } : folderPath
}

/** A folder that `install` has filled. */
async function installed(
  kind: string,
  packages: object,
  install: (folder: string) => Promise<void>,
): Promise<{ readonly folder: string } | { readonly reason: string }> {
  const text = JSON.stringify(packages)
  const folderPath = join(CACHE, `${kind}-${createHash('sha256').update(text).digest('hex').slice(0, 12)}`)
  if (existsSync(folderPath)) return { folder: folderPath }
  // Made beside its place, and moved there whole: another run may be making it, too.
  const building = `${folderPath}-${process.pid}`
  try {
    await mkdir(CACHE, { recursive: true })
    await install(building)
    await rename(building, folderPath)
    return { folder: folderPath }
  } catch (error) {
    if (existsSync(folderPath)) return { folder: folderPath }
    return { reason: `${text} cannot be set up here: ${describeFailure(error)}` }
  } finally {
    await rm(building, { recursive: true, force: true })
  }
}

/** The line in which npm or pip says what is wrong. */
function describeFailure(error: unknown): string {
  const { message, stderr = '' } = error as Error & { stderr?: string }
  const said = stderr.match(/^(?:npm error (?!code|errno|syscall|type)|ERROR: ).*/m)?.[0]
  return (said ?? message.split('\n')[0]!).slice(0, MAX_REASON_LENGTH)
}
