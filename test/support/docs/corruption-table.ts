import { DocsTable } from './docs-table.ts'

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

/** The table in `test/e2e/stores/damage-cases.md`. */
export class CorruptionTable {
  readonly #table = new DocsTable('test/e2e/stores/damage-cases.md', HEAD)

  /** Records a case. Writes `place`, such as a data folder, as DATA, and ids, ports and times as `…`. */
  note(store: string, what: string, { log, readyz, call, verify, repair }: Shown, folder?: string): void {
    const cells = [log, readyz, call, verify].map((said) => (said == null ? (said === null ? 'none' : '–') : `\`${steady(said, folder)}\``))
    this.#table.note(store, what, [...cells, repair])
  }

  /**
   * Compares the recorded cases with the page, or writes them to it: see `DocsTable`.
   * @throws {AssertionError} if they differ.
   */
  check(): void {
    this.#table.check()
  }
}

/** Returns the part of a message that is the same in every run, on one line and escaped for a table cell. */
function steady(said: string, folder?: string): string {
  return (
    (folder ? said.replaceAll(folder, 'DATA') : said)
      .trim()
      .replaceAll(/\s+/g, ' ')
      // The message depends on which bytes were damaged, and the counts on the progress of the service.
      .replaceAll(/is corrupted \([^)]*\)/g, 'is corrupted (…)')
      .replaceAll(/(cannot be read|corrupted index\.sqlite): (file|database|vtable|unable)[^.]*?(?=\. | files:)/g, '$1: …')
      .replaceAll(/\d+ (organizations|entries|totals)/g, '… $1')
      .replaceAll(/\b(inst|col|doc|file|org|req)_[0-9a-z]+/gi, '$1_…')
      .replaceAll(/kis-?test-?\w+/g, 'kis')
      .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
      .replaceAll('|', '\\|')
      .replaceAll('`', "'")
  )
}
