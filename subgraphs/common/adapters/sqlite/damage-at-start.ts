import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { Connection, orFailure } from './database.ts'

/** Files up to this size are checked as a whole at each start: 0.3 s from an uncached disk. */
const MAX_CHECKED_BYTES = 256 * 1024 * 1024
/** Tables that one look reads. A chunk index may have thousands, and whoever writes to it waits. */
const MAX_TABLES = 16

/**
 * What the thread that writes a file answers about its damage. It reads with a connection of its own, which finds what
 * the disk has, while the writer's finds what it remembers.
 */
export class DamageReader implements Disposable {
  readonly #connection: Connection
  /** The last table that a look has read. Empty: the next look begins anew. */
  #last = ''
  /** For the thread's other side. */
  readonly handlers: { readonly damageSeenAtStart: () => string | null; readonly readEnds: () => void }

  constructor(file: string) {
    this.#connection = new Connection(file, { readOnly: true })
    const { database } = this.#connection
    this.handlers = {
      damageSeenAtStart: () => orFailure(() => damageSeenAtStart(database, file)),
      readEnds: () =>
        orFailure(() => {
          this.#last = readEnds(database, this.#last)
        }),
    }
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]()
  }
}

/**
 * Gives what is wrong with an open file, in SQLite's words; null: nothing that a start checks. In files above 256 MiB
 * only both ends of each table are read; `kis verify` reads everything.
 * @throws {Error} SQLite cannot read a page
 */
export function damageSeenAtStart(database: DatabaseSync, file: string): string | null {
  if (statSync(file).size > MAX_CHECKED_BYTES) {
    let last = ''
    do last = readEnds(database, last)
    while (last !== '')
    return null
  }
  const { quick_check: found } = database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string }
  // It has read the file through the cache of the connection.
  database.exec('PRAGMA shrink_memory')
  // The first line names the database, which is always the same.
  return found === 'ok' ? null : found.replace(/^\*\*\* in database main \*\*\*\n/, '')
}

/**
 * Reads the first and the last entry of some tables after the table `after`, which shows damage in the upper pages.
 * Gives the last table that it has read; empty: there are no more.
 */
export function readEnds(database: DatabaseSync, after: string): string {
  const tables = database
    .prepare(
      `SELECT name, (SELECT name FROM pragma_table_info(tables.name) WHERE pk > 0 ORDER BY pk LIMIT 1) AS key FROM sqlite_schema tables
       WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name > ? ORDER BY name LIMIT ?`,
    )
    .all(after, MAX_TABLES) as { name: string; key: string | null }[]
  for (const { name, key } of tables) {
    const order = key === null ? 'rowid' : `"${key}"`
    for (const direction of ['ASC', 'DESC']) {
      const end = database.prepare(`SELECT * FROM "${name}" ORDER BY ${order} ${direction} LIMIT 1`)
      // SQLite's own tables may have numbers that are too large for JavaScript.
      end.setReadBigInts(true)
      end.get()
    }
  }
  return tables.length < MAX_TABLES ? '' : tables.at(-1)!.name
}
