import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants, setPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { findChromium } from '../../browser/packages.ts'
import type { Language } from './pages.ts'

const { PRIORITY_LOW, PRIORITY_ABOVE_NORMAL, PRIORITY_HIGHEST } = constants.priority
/** A phone has a processor for graphics. Without one, Chromium paints in threads, of which one shall do. */
const SCREEN = '--num-raster-threads=1'
/** Between two looks for new pages. */
const POLL_MS = 50

/** A Chromium with an empty cache, which has the processor to itself as on a phone. */
export interface Phone extends AsyncDisposable {
  readonly port: number
  /** Keeps the cookie of a session, as `name=value`. */
  sign(origin: string, cookie: string): Promise<void>
}

/** `thread`: of a process, the first of which has its number. Only root may raise a priority; others measure without. */
function prioritize(thread: number, priority: number): void {
  try {
    setPriority(thread, priority)
  } catch (error) {
    // It may have ended, too.
    if (!['EACCES', 'EPERM', 'ESRCH'].includes((error as { info?: { code?: string } }).info?.code ?? '')) throw error
  }
}

/** Gives each thread of a process the least priority: Linux keeps one for each. */
export function lower(pid: number): void {
  for (const thread of readdirSync(`/proc/${pid}/task`)) prioritize(Number(thread), PRIORITY_LOW)
}

/** `modules`: where puppeteer is installed. The reader has the language. */
export async function startPhone(modules: string, language: Language): Promise<Phone> {
  const chromium = await findChromium()
  if ('reason' in chromium) throw new Error(chromium.reason)
  const puppeteer = (await import(pathToFileURL(createRequire(join(modules, 'any.js')).resolve('puppeteer-core')).href)).default
  const folder = mkdtempSync(join(tmpdir(), 'kis-lighthouse-'))
  const flags = [SCREEN, `--accept-lang=${language}`, '--remote-debugging-port=0', `--user-data-dir=${folder}`]
  const args = chromium.args.filter((argument) => !argument.startsWith('--remote-debugging'))
  const child = spawn(chromium.file, [...args, ...flags, 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] })
  // Its threads and processes take it over.
  prioritize(child.pid!, PRIORITY_ABOVE_NORMAL)
  const port = await new Promise<number>((resolve, reject) => {
    let said = ''
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      said += text
      const [, found] = /DevTools listening on ws:\/\/[^:]+:(\d+)/.exec(said) ?? []
      if (found) resolve(Number(found))
    })
    child.once('exit', () => reject(new Error(`Chromium does not start: ${said.slice(-500)}`)))
  })
  const browser = await puppeteer.connect({ browserURL: `http://127.0.0.1:${port}` })
  const session = await browser.target().createCDPSession()
  const raised = new Set<number>()
  /** The main thread of a page, comes before what paints and loads for it. */
  const raisePages = async () => {
    const { processInfo } = await session.send('SystemInfo.getProcessInfo')
    for (const { type, id } of processInfo) {
      if (type === 'renderer' && !raised.has(id)) prioritize(id, PRIORITY_HIGHEST)
      raised.add(id)
    }
  }
  await raisePages()
  // A look that fails says that the browser ends.
  const poller = setInterval(() => void raisePages().catch(() => {}), POLL_MS)
  return {
    port,
    async sign(origin, cookie) {
      const [name, value] = cookie.split('=')
      const page = await browser.newPage()
      await page.setCookie({ name, value, url: origin })
      await page.close()
    },
    async [Symbol.asyncDispose]() {
      clearInterval(poller)
      await browser.disconnect()
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill()
      await ended
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
