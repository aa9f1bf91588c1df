// A worker in which Lighthouse looks at a page: its mobile preset, a phone of the middle class, 1.6 Mbit/s, 150 ms. Its
// thread has the lowest priority, because a phone does not audit itself.
import { createRequire } from 'node:module'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'

/** `modules`: where Lighthouse is installed. `port`: of a Chromium. */
export interface Audit {
  readonly modules: string
  readonly port: number
  readonly url: string
  readonly categories: readonly string[]
}

/** What Lighthouse says of the page. Scores are 0 to 1. */
export interface Report {
  readonly categories: Readonly<Record<string, { readonly score: number }>>
  readonly audits: Readonly<Record<string, { readonly title: string; readonly score: number | null; readonly displayValue?: string }>>
}

const { modules, port, url, categories } = workerData as Audit
// Of this thread: Linux keeps one for each.
setPriority(constants.priority.PRIORITY_LOW)
const { resolve } = createRequire(join(modules, 'any.js'))
const { default: lighthouse } = await import(pathToFileURL(resolve('lighthouse')).href)
const flags = { port, logLevel: 'error', onlyCategories: categories, disableStorageReset: true, disableFullPageScreenshot: true }
const { lhr } = await lighthouse(url, flags)
const report: Report = { categories: lhr.categories, audits: lhr.audits }
parentPort!.postMessage(report)
