// `npm run portal:lighthouse`: what Lighthouse says of the built portal on a slow phone, in each language. Names after the
// command choose pages. It fails where a score is below what we promise. A phone runs neither the service nor Lighthouse,
// so these have the least priority. Figures of a busy machine say little: each line ends with the load.
import { loadavg } from 'node:os'
import { Worker } from 'node:worker_threads'
import { modulesWith } from '../support/installed.ts'
import type { Audit, Report } from './support/audit.ts'
import { LANGUAGES, type Language } from './support/pages.ts'
import { lower, startPhone } from './support/phone.ts'
import { furnishedOrganization, startPortal } from './support/portal.ts'

const PACKAGES = { lighthouse: '13.5.0' }
const LOWEST = 95
/** Of the runs of a page the median counts. Where the first ones are all good or all bad, that is the median's, too. */
const RUNS = 5
const CATEGORIES = ['performance', 'accessibility'] as const
const METRICS = ['first-contentful-paint', 'largest-contentful-paint', 'total-blocking-time', 'cumulative-layout-shift', 'speed-index']

const modulesFolder = await modulesWith(PACKAGES)
if ('reason' in modulesFolder) throw new Error(modulesFolder.reason)
const { modules } = modulesFolder

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
for (const { pid } of portal.service.processes.values()) lower(pid)

async function measure(language: Language, name: string, path: string): Promise<Report> {
  await using phone = await startPhone(modules, language)
  if (name !== 'sign-in') await phone.sign(origin, (await owner.signIn()).cookie)
  const workerData: Audit = { modules, port: phone.port, url: `${origin}${path}`, categories: CATEGORIES }
  const worker = new Worker(new URL('support/audit.ts', import.meta.url), { workerData })
  return await new Promise<Report>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('Lighthouse ended without a report.')))
  })
}

const scoreOf = ({ categories }: Report, category: string) => Math.round((categories[category]?.score ?? 0) * 100)
const isGood = (report: Report) => CATEGORIES.every((category) => scoreOf(report, category) >= LOWEST)
/** Whether the runs to come cannot change what the median is. */
function isDecided(reports: readonly Report[]): boolean {
  const good = reports.filter(isGood).length
  return Math.max(good, reports.length - good) > RUNS / 2
}
let isEnough = true
console.log(`load before ${loadavg()[0]!.toFixed(1)}`)
for (const [name, path] of pages)
  for (const language of LANGUAGES) {
    const reports: Report[] = []
    while (!isDecided(reports)) reports.push(await measure(language, name, path))
    reports.sort((one, other) => scoreOf(one, 'performance') - scoreOf(other, 'performance'))
    const all = reports.map((report) => scoreOf(report, 'performance')).join(' ')
    const median = reports[Math.floor((reports.length - 1) / 2)]!
    const scores = CATEGORIES.map((category) => `${category} ${scoreOf(median, category)}`)
    const metrics = METRICS.map((metric) => `${metric} ${median.audits[metric]?.displayValue}`)
    console.log([name, language, ...scores, ...metrics, `runs ${all}`, `load ${loadavg()[0]!.toFixed(1)}`].join('  '))
    if (isGood(median)) continue
    isEnough = false
    console.log(`    below ${LOWEST}`)
    for (const [id, { title, score, displayValue }] of Object.entries(median.audits))
      if (score !== null && score < 0.9 && !METRICS.includes(id)) console.log(`    ${id}: ${title} ${displayValue ?? ''}`)
  }
if (!isEnough) process.exitCode = 1
