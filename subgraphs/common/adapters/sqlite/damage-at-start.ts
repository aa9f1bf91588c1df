import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { Connection, orFailure } from './database.ts'

/** Files up to this size are checked as a whole at each start: 0.3 s from an uncached disk. */
const MAX_CHECKED_BYTES = 256 * 1024 * 1024

/**
 * What a thread that writes a file answers about its damage. Each answer is read with a new connection: it finds what the
 * disk has, while the writer's finds what it remembers.
 */
export function damageReader(file: string) {
  const read =
    <T>(run: (database: DatabaseSync) => T): (() => T) =>
    () =>
      orFailure(() => {
        using connection = new Connection(file, { readOnly: true })
        return run(connection.database)
      })
  return { damageSeenAtStart: read((database) => damageSeenAtStart(database, file)), readEnds: read(readEnds) }
}

/**
 * Gives what is wrong with an open file, in SQLite's words; null: nothing that a start checks. In files above 256 MiB
 * only both ends of each table are read; `kis verify` reads everything.
 * @throws {Error} SQLite cannot read a page
 */
export function damageSeenAtStart(database: DatabaseSync, file: string): string | null {
  if (statSync(file).size > MAX_CHECKED_BYTES) {
    readEnds(database)
    return null
  }
  const { quick_check: found } = database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string }
  // The first line names the database, which is always the same.
  return found === 'ok' ? null : found.replace(/^\*\*\* in database main \*\*\*\n/, '')
}

/**
 * Reads the first and the last entry of each table and index, in microseconds each. This shows damage in the upper
 * pages.
 */
export function readEnds(database: DatabaseSync): void {
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    .all() as { name: string }[]
  for (const { name } of tables) {
    const [key] = database.prepare(`SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk`).all(name) as { name: string }[]
    const order = key ? `"${key.name}"` : 'rowid'
    for (const direction of ['ASC', 'DESC']) {
      const end = database.prepare(`SELECT * FROM "${name}" ORDER BY ${order} ${direction} LIMIT 1`)
      // SQLite's own tables may have numbers that are too large for JavaScript.
      end.setReadBigInts(true)
      end.get()
    }
  }
}
