// `npm run portal:lighthouse`: what Lighthouse says of the built portal on a slow phone, in each language. Names after the
// command choose pages. It fails where a score is below what we promise. Figures of a busy machine say little: each line
// ends with the load.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { findChromium } from '../browser/packages.ts'
import { modulesWith } from '../support/installed.ts'
import { LANGUAGES, type Language } from './support/pages.ts'
import { furnishedOrganization, startPortal } from './support/portal.ts'

const PACKAGES = { lighthouse: '13.5.0' }
const LOWEST = 95
/** Of the runs of a page the median counts. It needs no third where two say the same. */
const RUNS = 3
const CATEGORIES = ['performance', 'accessibility'] as const
const METRICS = ['first-contentful-paint', 'largest-contentful-paint', 'total-blocking-time', 'cumulative-layout-shift', 'speed-index']

interface Result {
  readonly lhr: {
    readonly categories: Readonly<Record<string, { readonly score: number }>>
    readonly audits: Readonly<
      Record<string, { readonly title: string; readonly score: number | null; readonly displayValue?: string; readonly details?: unknown }>
    >
  }
}

const chromium = await findChromium()
if ('reason' in chromium) throw new Error(chromium.reason)
const place = await modulesWith(PACKAGES)
if ('reason' in place) throw new Error(place.reason)
const { resolve } = createRequire(join(place.modules, 'any.js'))
const load = async (name: string) => (await import(pathToFileURL(resolve(name)).href)).default
const [lighthouse, puppeteer] = await Promise.all(['lighthouse', 'puppeteer-core'].map(load))

await using portal = await startPortal()
const owner = await furnishedOrganization(portal)
const origin = portal.service.rest
const {
  body: {
    data: [agent],
  },
} = await owner.rest('GET', '/v1/agents')
const [run] = (await owner.rest('GET', '/v1/runs')).body.data
const ALL = {
  'sign-in': '/sign-in',
  home: '/home',
  collections: '/collections',
  chat: `/agents/${agent.id}?tab=chat&thread=${run.thread_id}`,
}
const wanted = process.argv.slice(2)
const pages = Object.entries(ALL).filter(([name]) => wanted.length === 0 || wanted.includes(name))

/** Starts a browser with an empty cache, whose reader has this language. */
async function start(language: Language): Promise<{ readonly port: number; readonly child: ChildProcess; readonly folder: string }> {
  if ('reason' in chromium) throw new Error(chromium.reason)
  const folder = mkdtempSync(join(tmpdir(), 'kis-lighthouse-'))
  const flags = [`--accept-lang=${language}`, '--remote-debugging-port=0', `--user-data-dir=${folder}`]
  const args = chromium.args.filter((argument) => !argument.startsWith('--remote-debugging'))
  const child = spawn(chromium.file, [...args, ...flags, 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] })
  const port = await new Promise<number>((resolve, reject) => {
    let said = ''
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      said += text
      const [, found] = /DevTools listening on ws:\/\/[^:]+:(\d+)/.exec(said) ?? []
      if (found) resolve(Number(found))
    })
    child.once('exit', () => reject(new Error(`Chromium does not start: ${said.slice(-500)}`)))
  })
  return { port, child, folder }
}

/** Lighthouse's mobile preset: a phone of the middle class, 1.6 Mbit/s, 150 ms. */
async function measure(language: Language, name: string, path: string): Promise<Result> {
  const { port, child, folder } = await start(language)
  try {
    const browser = await puppeteer.connect({ browserURL: `http://127.0.0.1:${port}` })
    const page = await browser.newPage()
    if (name !== 'sign-in') {
      const [cookie, value] = (await owner.signIn()).cookie.split('=') as [string, string]
      await page.setCookie({ name: cookie, value, url: origin })
    }
    const flags = { port, output: 'json', logLevel: 'error', onlyCategories: CATEGORIES, disableStorageReset: true }
    const result = await lighthouse(`${origin}${path}`, flags, undefined, page)
    await browser.disconnect()
    return result
  } finally {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill()
    await ended
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

const scoreOf = ({ lhr }: Result, category: string) => Math.round((lhr.categories[category]?.score ?? 0) * 100)
const isGood = (result: Result) => CATEGORIES.every((category) => scoreOf(result, category) >= LOWEST)
let isEnough = true
for (const [name, path] of pages)
  for (const language of LANGUAGES) {
    const results: Result[] = []
    while (results.length < RUNS - 1 || (results.length < RUNS && new Set(results.map(isGood)).size > 1))
      results.push(await measure(language, name, path))
    results.sort((one, other) => scoreOf(one, 'performance') - scoreOf(other, 'performance'))
    // Of two the lower one.
    const median = results[Math.floor((results.length - 1) / 2)]!
    const { audits } = median.lhr
    const scores = CATEGORIES.map((category) => `${category} ${scoreOf(median, category)}`)
    const load = `load ${loadavg()[0]!.toFixed(1)}`
    console.log([name, language, ...scores, ...METRICS.map((metric) => `${metric} ${audits[metric]?.displayValue}`), load].join('  '))
    if (isGood(median)) continue
    isEnough = false
    console.log(`    below ${LOWEST}`)
    for (const [id, { title, score, displayValue }] of Object.entries(audits))
      if (score !== null && score < 0.9 && !METRICS.includes(id)) console.log(`    ${id}: ${title} ${displayValue ?? ''}`)
  }
if (!isEnough) process.exitCode = 1
