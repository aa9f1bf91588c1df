import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'

/** Files up to this size are checked as a whole at each start: 0.3 s from an uncached disk. */
const MAX_CHECKED_BYTES = 256 * 1024 * 1024
const TABLES = `
  SELECT name, coalesce((SELECT '"' || name || '"' FROM pragma_table_info(tables.name) WHERE pk > 0 ORDER BY pk LIMIT 1), 'rowid') AS key
  FROM sqlite_schema tables WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE 'CREATE VIRTUAL%'`

/**
 * Gives what is wrong with an open file, in SQLite's words; null: nothing that a start checks. In files above 256 MiB
 * only both ends of each table are read; `kis verify` reads everything.
 * @throws {Error} SQLite cannot read a page
 */
export function findCorruptionAtStart(database: DatabaseSync, file: string): string | null {
  if (statSync(file).size > MAX_CHECKED_BYTES) {
    readEnds(database)
    return null
  }
  const { quick_check: found } = database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string }
  // It has read the file through the cache of the connection.
  database.exec('PRAGMA shrink_memory')
  // The first line names the database, which is always the same.
  return found === 'ok' ? null : found.replace(/^\*\*\* in database main \*\*\*\n/, '')
}

/** Reads the first and the last entry of each table, which shows damage in the upper pages. */
export function readEnds(database: DatabaseSync): void {
  for (const { name, key } of database.prepare(TABLES).all() as { name: string; key: string }[])
    for (const direction of ['ASC', 'DESC']) {
      const end = database.prepare(`SELECT * FROM "${name}" ORDER BY ${key} ${direction} LIMIT 1`)
      // SQLite's own tables may have numbers that are too large for JavaScript.
      end.setReadBigInts(true)
      end.get()
    }
}
