import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'kis-bench')
/** Limit of an install. LiteLLM with its proxy is about a hundred packages, which take minutes on a busy machine. */
const INSTALL_MS = 15 * 60_000
/** Options that report an unreachable package index soon. */
const RETRIES = ['--retries', '1', '--timeout', '15']

const run = promisify(execFile)

/**
 * Returns the path of the Python with LiteLLM. Below 1.109: the newest releases need certificates that not every
 * package index has yet.
 */
export async function pythonWithLitellm(): Promise<string> {
  const folderPath = await installed('litellm-below-1.109', async (folder) => {
    await run('python3', ['-m', 'venv', folder], { timeout: INSTALL_MS })
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...RETRIES, 'litellm[proxy]<1.109']
    await run(join(folder, 'bin', 'python'), install, { timeout: INSTALL_MS })
  })
  return join(folderPath, 'bin', 'python')
}

/** Pinned versions. With those of the default install every stream gets status 500 (Portkey's issues 1389 and 1550). */
const PORTKEY = {
  private: true,
  dependencies: { '@portkey-ai/gateway': '1.15.2' },
  overrides: { '@hono/node-server': '1.13.5', '@hono/node-ws': '1.0.4', hono: '4.9.7' },
}

/** Returns the path of Portkey's program. */
export async function portkeyProgram(): Promise<string> {
  const folderPath = await installed('portkey-1.15.2', async (folder) => {
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'package.json'), JSON.stringify(PORTKEY))
    const install = [
      'install',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--fetch-retries=1',
      '--fetch-timeout=15000',
      '--prefix',
      folder,
    ]
    await run('npm', install, { cwd: folder, timeout: INSTALL_MS })
  })
  return join(folderPath, 'node_modules/@portkey-ai/gateway/build/start-server.js')
}

/**
 * Returns a folder that `install` fills, once for each machine.
 * @throws {Error} the install failed; the message says why
 */
async function installed(name: string, install: (folder: string) => Promise<void>): Promise<string> {
  const folderPath = join(CACHE, name)
  if (existsSync(folderPath)) return folderPath
  // Install beside the final folder, then move, so that an interrupted install does not count.
  const building = `${folderPath}-${process.pid}`
  console.error(`Installing ${name} into ${CACHE}, which takes some minutes.`)
  try {
    await mkdir(CACHE, { recursive: true })
    await install(building)
    await rename(building, folderPath)
    return folderPath
  } catch (error) {
    const { message, stderr = '', killed } = error as Error & { readonly stderr?: string; readonly killed?: boolean }
    const why = killed ? `it took longer than ${INSTALL_MS / 60_000} min` : stderr.trim().split('\n').slice(-3).join('\n') || message
    throw new Error(`${name} cannot be installed here; is the package index within reach? Without --peers it is not needed.\n${why}`)
  } finally {
    await rm(building, { recursive: true, force: true })
  }
}
