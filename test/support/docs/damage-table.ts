import { readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'vitest'

const FILE = new URL('../../docs/operate/damage-cases.md', import.meta.url)
const HEAD = '| store | what happened | the start, or the log | `/readyz` | a call | `kis verify` | what repairs it |'

/** The messages of the service about a damaged store. Null means that no process runs that could be asked. */
export interface Shown {
  readonly log: string
  readonly readyz: string | null
  readonly call: string | null
  /** Absent if the test does not run the command, because it repeats its requests until the store is back. */
  readonly verify?: string | null
  /** The command or the action of the operator. */
  readonly repair: string
}

/**
 * The table in `docs/operate/damage-cases.md`. Each case that a test observes must be in it unchanged. With
 * `KIS_WRITE_DOCS=1`, the observed cases are written to it instead.
 */
export class DamageTable {
  readonly #seen = new Map<string, string>()

  /** Records a case. Writes `place`, such as a data folder, as DATA, and ids, ports and times as `…`. */
  note(store: string, what: string, { log, readyz, call, verify, repair }: Shown, place?: string): void {
    const cells = [log, readyz, call, verify].map((said) => (said == null ? (said === null ? 'none' : '–') : `\`${steady(said, place)}\``))
    const start = `| ${store} | ${what} | `
    this.#seen.set(start, `${start}${[...cells, repair].join(' | ')} |`)
  }

  /**
   * Compares the recorded cases with the page.
   * @throws {AssertionError} if they differ.
   */
  check(): void {
    if (process.env.KIS_WRITE_DOCS) {
      this.#write()
      return
    }
    const rows = readFileSync(FILE, 'utf8').split('\n')
    for (const [start, row] of this.#seen) expect(rows.find((line) => line.startsWith(start))).toBe(row)
  }

  #write(): void {
    const page = readFileSync(FILE, 'utf8')
    const text = page.split(HEAD)[0]!
    const kept = new Map(
      page
        .split('\n')
        .filter((line) => /^\| [a-zA-Z]/.test(line) && line !== HEAD)
        .map((line) => [readRowStart(line), line]),
    )
    const rows = [...new Map([...kept, ...this.#seen]).values()]
    writeFileSync(FILE, `${[text + HEAD, HEAD.replaceAll(/[^|]+/g, '---'), ...rows.sort()].join('\n')}\n`)
  }
}

function readRowStart(line: string): string {
  const [, store, what] = line.split('|')
  return `|${store}|${what}| `
}

/** Returns the part of a message that is the same in every run, on one line and escaped for a table cell. */
function steady(said: string, place?: string): string {
  return (
    (place ? said.replaceAll(place, 'DATA') : said)
      .trim()
      .replaceAll(/\s+/g, ' ')
      // The message depends on which bytes were damaged, and the counts on the progress of the service.
      .replaceAll(/is damaged \([^)]*\)/g, 'is damaged (…)')
      .replaceAll(/(cannot be read|damaged index\.sqlite): (file|database|vtable|unable)[^.]*?(?=\. | files:)/g, '$1: …')
      .replaceAll(/\d+ (organizations|entries|totals)/g, '… $1')
      .replaceAll(/\b(inst|col|doc|file|org|req)_[0-9a-z]+/gi, '$1_…')
      .replaceAll(/kis-?test-?\w+/g, 'kis')
      .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
      .replaceAll('|', '\\|')
      .replaceAll('`', "'")
  )
}
