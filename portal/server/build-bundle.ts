import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Bundle, loadBundle } from './bundle.ts'
import { digestSources } from './source-digest.ts'

/** Beside the bundle: the digest of the sources that it was built of. */
const DIGEST_FILE = 'sources.sha256'
/** Ten times what it takes on two busy cores. */
const TIMEOUT_MS = 180_000
/** What is older is left over: no build takes so long. */
const LEFT_AFTER_MS = 2 * TIMEOUT_MS
/** The end of what the tools said: the reason is there. */
const MAX_OUTPUT_CHARACTERS = 8_192

/** Gives the command that builds the sources in `folder` into `out`; null: the tools for it are not installed. */
export type Builder = (folder: string, out: string) => readonly [string, ...string[]] | null

export const viteBuilder: Builder = (folder, out) => {
  const vite = join(dirname(folder), 'node_modules/vite/bin/vite.js')
  const options = ['--config', join(folder, 'vite.config.ts'), '--outDir', out, '--emptyOutDir', '--logLevel', 'warn']
  return existsSync(vite) ? [process.execPath, vite, 'build', ...options] : null
}

/** Whether `dist/` was built of the sources that are there. Without sources, as in the image, it is what there is. */
export async function isFresh(folder: string): Promise<boolean> {
  if (!existsSync(join(folder, 'dist/index.html'))) return false
  if (!existsSync(join(folder, 'web'))) return true
  const builtOf = await readFile(join(folder, 'dist', DIGEST_FILE), 'utf8').catch(() => null)
  return builtOf === (await digestSources(folder))
}

/**
 * Builds the sources into `dist/`, in a process of low priority. `dist/` is replaced only when all went well. Gives what
 * this process has built, because another one may replace `dist/` at any time.
 * @throws {Error} the build failed, with what the tools said
 */
export async function buildBundle(
  folder: string,
  command: ReturnType<Builder> & {},
  out: string,
  publicUrl: string | null,
  signal: AbortSignal,
): Promise<Bundle> {
  try {
    await removeLeftovers(folder)
    const digest = await digestSources(folder)
    await run(command, dirname(folder), signal)
    await writeFile(join(out, DIGEST_FILE), digest)
    const bundle = await loadBundle(out, publicUrl)
    const dist = join(folder, 'dist')
    await rm(dist, { recursive: true, force: true })
    await rename(out, dist).catch((error) => {
      // Another process has built it, too.
      if (!['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error
    })
    return bundle
  } finally {
    await rm(out, { recursive: true, force: true })
  }
}

/** Where a build goes: a name that no other process takes, also not one of another container on the same folder. */
export const ownOutput = (folder: string) => join(folder, `dist-${randomBytes(8).toString('hex')}`)

function run([file, ...args]: readonly [string, ...string[]], cwd: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const { PATH, HOME } = process.env
    // The tools get none of the service's secrets.
    const env = { PATH, HOME, NODE_ENV: 'production' }
    const ended = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
    const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], signal: ended, killSignal: 'SIGKILL' })
    // Some systems allow no change of priority.
    try {
      if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW)
    } catch {}
    let output = ''
    const append = (text: string) => {
      output = (output + text).slice(-MAX_OUTPUT_CHARACTERS)
    }
    child.stdout.setEncoding('utf8').on('data', append)
    child.stderr.setEncoding('utf8').on('data', append)
    child.once('error', (error) => reject(signal.aborted ? error : new Error(`The build did not end: ${error.message}\n${output}`)))
    child.once('close', (code) => (code === 0 ? resolve() : reject(new Error(`The build ended with code ${code}.\n${output}`))))
  })
}

/** Removes what processes left that were ended while they built: it is older than any build that goes on. */
async function removeLeftovers(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!/^dist-[0-9a-f]+$/.test(name)) continue
    const begun = await stat(join(folder, name)).catch(() => null)
    if (begun && begun.mtimeMs < Date.now() - LEFT_AFTER_MS) await rm(join(folder, name), { recursive: true, force: true })
  }
}

// `npm run portal:build`.
if (import.meta.main) {
  const folder = fileURLToPath(new URL('..', import.meta.url)).replace(/[/\\]$/, '')
  const out = ownOutput(folder)
  const command = viteBuilder(folder, out)
  if (!command) throw new Error('Vite is not installed. Run `npm ci` first.')
  await buildBundle(folder, command, out, null, new AbortController().signal)
}
