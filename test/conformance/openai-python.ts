import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { ConformanceClient, Thrown, Understood } from './clients.ts'

const VERSION = '3.54.0'
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'kis-conformance')
/** A fresh environment takes some 10 s; where the package index does not answer, the suite is skipped and not late. */
const SET_UP_MS = 120_000

const run = promisify(execFile)

/** The Python that has the official client, set up once a machine; or why there is none. */
export async function pythonWithOpenai(): Promise<{ readonly python: string } | { readonly reason: string }> {
  const place = join(CACHE, `openai-${VERSION}`)
  const python = join(place, 'bin', 'python')
  if (existsSync(python)) return { python }
  // Made beside its place, and moved there whole: another run may be making it, too.
  const building = `${place}-${process.pid}`
  try {
    await mkdir(dirname(place), { recursive: true })
    await run('python3', ['-m', 'venv', building], { timeout: SET_UP_MS })
    const install = ['-m', 'pip', 'install', '--quiet', '--retries', '1', '--timeout', '10', `openai==${VERSION}`]
    await run(join(building, 'bin', 'python'), install, { timeout: SET_UP_MS })
    await rename(building, place)
    return { python }
  } catch (error) {
    await rm(building, { recursive: true, force: true })
    if (existsSync(python)) return { python }
    return { reason: `python3 with openai ${VERSION} cannot be set up here: ${(error as Error).message.split('\n')[0]}` }
  }
}

/** The official OpenAI client for Python, in a process of its own. */
export async function openaiPython(python: string, baseUrl: string, apiKey: string): Promise<ConformanceClient> {
  const script = fileURLToPath(new URL('./openai-python.py', import.meta.url))
  const child = spawn(python, [script, `${baseUrl}/v1`, apiKey], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async () => {
    const { done, value } = await lines.next()
    if (done) throw new Error('the Python process has ended')
    return JSON.parse(value)
  }
  await next()
  const call = async <Value>(operation: string, ...args: readonly unknown[]): Promise<Value> => {
    child.stdin.write(`${JSON.stringify([operation, args])}\n`)
    const { error, value } = await next()
    if (error !== undefined) throw new Error(error)
    return value
  }
  return {
    name: 'openai for Python',
    answer: (ask) => call<Understood>('answer', ask),
    stream: (ask) => call<Understood>('stream', ask),
    failure: (ask, isStream) => call<Thrown>('failure', ask, isStream),
    leave: (ask) => call<void>('leave', ask),
    async close() {
      child.stdin.end()
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}
