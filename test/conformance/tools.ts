import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'kis-conformance')
/** A set-up takes some 10 s; where the package index does not answer, the suite is skipped and not late. */
const SET_UP_MS = 120_000

export const run = promisify(execFile)

export type Tool = { readonly path: string } | { readonly reason: string }

/** The Python that has these packages, as `openai==3.54.0`, or why there is none. */
export async function pythonWith(...packages: readonly string[]): Promise<Tool> {
  return setUp(packages, join('bin', 'python'), async (place) => {
    await run('python3', ['-m', 'venv', place], { timeout: SET_UP_MS })
    const install = ['-m', 'pip', 'install', '--quiet', '--retries', '1', '--timeout', '10', ...packages]
    await run(join(place, 'bin', 'python'), install, { timeout: SET_UP_MS })
  })
}

/** The folder `node_modules` with these packages, as `openapi-typescript@7.13.0`, or why there is none. */
export async function modulesWith(...packages: readonly string[]): Promise<Tool> {
  return setUp(packages, 'node_modules', async (place) => {
    const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--fetch-retries=1', '--fetch-timeout=10000']
    await run('npm', ['install', '--prefix', place, ...quiet, ...packages], { timeout: SET_UP_MS })
  })
}

/** Sets a tool up once a machine. `inside` is what is used of it, below its place. */
async function setUp(packages: readonly string[], inside: string, build: (place: string) => Promise<void>): Promise<Tool> {
  const place = join(CACHE, packages.join('-').replaceAll(/[=@]+/g, '-'))
  const path = join(place, inside)
  if (existsSync(path)) return { path }
  // Made beside its place, and moved there whole: another run may be making it, too.
  const building = `${place}-${process.pid}`
  try {
    await mkdir(building, { recursive: true })
    await build(building)
    await rename(building, place)
    return { path }
  } catch (error) {
    await rm(building, { recursive: true, force: true })
    if (existsSync(path)) return { path }
    return { reason: `${packages.join(' and ')} cannot be set up here: ${(error as Error).message.split('\n')[0]}` }
  }
}
