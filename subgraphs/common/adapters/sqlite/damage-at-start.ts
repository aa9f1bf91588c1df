import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'

/** Files of up to this are checked whole at each start: 0.3 s on a disk that is not cached. */
const MAX_CHECKED_BYTES = 256 * 1024 * 1024

/**
 * What is wrong with an open file, in SQLite's words; null: nothing that a start looks for. Of files of more than 256 MiB it reads the tables' two ends;
 * `kis verify` reads all of them. @throws what SQLite says of a page that it cannot read.
 */
export function damageSeenAtStart(database: DatabaseSync, file: string): string | null {
  if (statSync(file).size > MAX_CHECKED_BYTES) {
    readEnds(database)
    return null
  }
  const { quick_check: found } = database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string }
  // Its first line names the database, which is always the same.
  return found === 'ok' ? null : found.replace(/^\*\*\* in database main \*\*\*\n/, '')
}

/** Reads the first and the last entry of each table and index, which takes microseconds each: damage in the upper pages shows. */
export function readEnds(database: DatabaseSync): void {
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    .all() as { name: string }[]
  for (const { name } of tables) {
    const [key] = database.prepare(`SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk`).all(name) as { name: string }[]
    const order = key ? `"${key.name}"` : 'rowid'
    for (const direction of ['ASC', 'DESC']) {
      const end = database.prepare(`SELECT * FROM "${name}" ORDER BY ${order} ${direction} LIMIT 1`)
      // Numbers of SQLite's own tables may be larger than those of JavaScript.
      end.setReadBigInts(true)
      end.get()
    }
  }
}
