import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MAX_README_LINES = 150
const MAX_COLUMNS = 120
/** Folders of the project's own files, whose paths stand in backticks. */
const FOLDERS = ['.ci', 'bench', 'cli', 'docs', 'examples', 'gateway', 'models', 'portal', 'rest-adapter', 'schema', 'subgraphs', 'test']
/** The name that CONTRIBUTING.md gives to the files that a reader adds. */
const EXAMPLE = /\bacme\b/
const PATH = /^(?:\w|\.ci)[\w.@-]*(?:\/[\w.@-]+)*$/
/** A name with one of these endings is a file of the project, even without its folder. */
const SOURCE = /\.(?:ts|md|graphql|py|sh|ya?ml)$/
const DECISIONS = 'docs/decisions/'
const MAX_DECISION_WORDS = 350
/** What each decision begins with, and its headings in their order. */
const DECISION =
  /^# .+\n\n- Status: (?:accepted|superseded by \d{4})\n- Date: \d{4}-\d\d-\d\d\n\n## Context\n[\s\S]+\n## Decision\n[\s\S]+\n## Consequences\n/
/** An entry of the changes may name what a later version no longer has. */
const HISTORY = ['CHANGELOG.md']

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file && existsSync(join(ROOT, file)))
const pages = files.filter((file) => file.endsWith('.md') && !file.startsWith('models/'))
const decisions = pages.filter((page) => /^docs\/decisions\/\d{4}-/.test(page))
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

/** The page without its blocks of code; each line keeps its number. */
function readProse(page: string): readonly string[] {
  let inCode = false
  return read(page)
    .split('\n')
    .map((line) => {
      const isFence = /^\s*```/.test(line)
      if (isFence) inCode = !inCode
      return inCode || isFence ? '' : line
    })
}

/** The anchors that GitHub gives to the headings of a page. */
function listAnchors(page: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  for (const line of readProse(page)) {
    const heading = /^#{1,6} (.*)$/.exec(line)?.[1]
    if (heading === undefined) continue
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = text.replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '').replaceAll(' ', '-')
    let unique = anchor
    for (let n = 1; anchors.has(unique); n++) unique = `${anchor}-${n}`
    anchors.add(unique)
  }
  return anchors
}

/** Whether a file or folder has this path; the ending of a file may be left out. */
function isThere(path: string): boolean {
  return existsSync(join(ROOT, path)) || files.some((file) => file.startsWith(`${path}.`))
}

describe('Documentation', () => {
  it('has valid links and anchors', () => {
    const broken: string[] = []
    for (const page of pages) {
      const text = readProse(page)
        .join('\n')
        .replace(/`[^`]*`/g, '')
      for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^[a-z]+:/.test(target!)) continue
        const [path, anchor] = target!.split('#') as [string, string?]
        const file = path === '' ? page : relative(ROOT, resolve(ROOT, dirname(page), path))
        if (!existsSync(join(ROOT, file))) broken.push(`${page}: ${target}`)
        else if (anchor && !(file.endsWith('.md') && listAnchors(file).has(anchor))) broken.push(`${page}: ${target} (no such heading)`)
      }
    }
    expect(broken).toEqual([])
  })

  it('names only existing files', () => {
    const gone: string[] = []
    for (const page of pages.filter((page) => !HISTORY.includes(page))) {
      for (const [, code] of readProse(page)
        .join('\n')
        .matchAll(/`([^`\n]+)`/g)) {
        const path = code!.replace(/[:#].*$/, '').replace(/\/$/, '')
        if (!PATH.test(path) || EXAMPLE.test(path)) continue
        const isFromRoot = path.includes('/') && FOLDERS.includes(path.split('/')[0]!)
        if ((isFromRoot && !isThere(path)) || (!isFromRoot && SOURCE.test(path) && !files.some((file) => `/${file}`.endsWith(`/${path}`))))
          gone.push(`${page}: ${code}`)
      }
    }
    expect(gone).toEqual([])
  })

  it(`has a README of at most ${MAX_README_LINES} lines`, () => {
    expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(MAX_README_LINES)
  })

  it(`wraps prose at ${MAX_COLUMNS} columns`, () => {
    const long: string[] = []
    for (const page of pages) {
      readProse(page).forEach((line, i) => {
        const words = line.trim().replace(/^(?:[-*]|\d+\.) /, '')
        // A line with one word, such as a link or a path, cannot be broken. Words in backticks, and the text of a link,
        // are one.
        const isOneWord = !words
          .replace(/`[^`]*`/g, '_')
          .replace(/\[[^\]]*\]\([^)]*\)/g, '_')
          .includes(' ')
        const columns = [...line].length
        if (columns > MAX_COLUMNS && !line.startsWith('|') && !line.startsWith('#') && !isOneWord) long.push(`${page}:${i + 1}: ${columns}`)
      })
    }
    expect(long).toEqual([])
  })

  it('names only variables that the code reads', () => {
    const ending = /\.(?:[jt]s|sh|yml|yaml)$/
    const sources = files
      .filter(
        (file) => (ending.test(file) || file === '.ci/run') && file !== 'package-lock.json' && statSync(join(ROOT, file)).size < 1_000_000,
      )
      .map(read)
      .join('\n')
    const known = new Set([...sources.matchAll(/(?:\benv\.|['"{,] ?|\$|^ +)(KIS_[A-Z_]*[A-Z])\b/gm)].map(([, name]) => name))
    const named = pages
      .filter((page) => !HISTORY.includes(page))
      .flatMap((page) => [...(read(page).match(/\bKIS_[A-Z_]*[A-Z]\b/g) ?? [])].map((name) => ({ page, name })))
    expect(named.filter(({ name }) => !known.has(name))).toEqual([])
  })

  it('is reachable from its index', () => {
    const index = read('docs/README.md')
    const missing = pages.filter(
      (page) =>
        /^docs\/.+\.md$/.test(page) &&
        page !== 'docs/README.md' &&
        !decisions.includes(page) &&
        !index.includes(`](${page.slice('docs/'.length)}`),
    )
    expect(missing).toEqual([])
  })

  it('has decisions of one form, which the index of decisions lists', () => {
    const index = read(`${DECISIONS}README.md`)
    const wrong = decisions.filter((page) => {
      const text = read(page)
      const title = /^# (.+)/.exec(text)?.[1]
      const name = page.slice(DECISIONS.length)
      const isListed = index.includes(`[${name.slice(0, 4)}](${name}) | ${title} |`)
      return !DECISION.test(text) || text.split(/\s+/).length > MAX_DECISION_WORDS + 1 || !isListed
    })
    expect(wrong).toEqual([])
  })
})
