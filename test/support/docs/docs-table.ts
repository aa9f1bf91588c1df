import { readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'vitest'

/**
 * The table at the end of a Markdown file, whose rows are told apart by their first two cells. Each row that a test
 * observes must be in it unchanged. With `KIS_WRITE_DOCS=1`, the observed rows are written to it instead.
 */
export class DocsTable {
  readonly #file: URL
  readonly #head: string
  readonly #compared: (row: string) => string
  readonly #seen = new Map<string, string>()

  /**
   * `path` is relative to the root of the repository, `head` the first line of the table. `compared` gives what of a row
   * must be equal; all of it by default.
   */
  constructor(path: string, head: string, compared = (row: string) => row) {
    this.#file = new URL(`../../../${path}`, import.meta.url)
    this.#head = head
    this.#compared = compared
  }

  note(first: string, second: string, cells: readonly string[]): void {
    const start = `| ${first} | ${second} | `
    this.#seen.set(start, `${start}${cells.join(' | ')} |`)
  }

  /**
   * Compares the noted rows with the page.
   * @throws {AssertionError} if they differ.
   */
  check(): void {
    if (process.env.KIS_WRITE_DOCS) {
      this.#write()
      return
    }
    const rows = readFileSync(this.#file, 'utf8').split('\n')
    const found = (start: string) => this.#compared(rows.find((line) => line.startsWith(start)) ?? `no row ${start}`)
    expect([...this.#seen.keys()].map(found)).toEqual([...this.#seen.values()].map(this.#compared))
  }

  #write(): void {
    const page = readFileSync(this.#file, 'utf8')
    const text = page.split(this.#head)[0]!
    const retained = new Map(
      page
        .slice(text.length)
        .split('\n')
        .filter((line) => /^\| [a-zA-Z]/.test(line) && line !== this.#head)
        .map((line) => [readRowStart(line), line]),
    )
    const rows = [...new Map([...retained, ...this.#seen]).values()]
    writeFileSync(this.#file, `${[text + this.#head, this.#head.replaceAll(/[^|]+/g, '---'), ...rows.sort()].join('\n')}\n`)
  }
}

function readRowStart(line: string): string {
  const [, first, second] = line.split('|')
  return `|${first}|${second}| `
}
