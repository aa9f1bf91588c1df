import { DatabaseSync } from 'node:sqlite'
import { explainMismatch, type Installation } from '../../identity/installation.ts'

/** The mark in a file. */
export interface StoreMark extends Installation {
  /** Names of the files that were opened together with it, including itself; empty until all of them existed. */
  readonly siblings: readonly string[]
  /** The fingerprint of the secret with which version 0.2 made the file. */
  readonly madeWith: string | null
}

/** `secret` is empty since a key pepper is in the store, so that version 0.2 refuses what it cannot read. */
const TABLE = 'CREATE TABLE IF NOT EXISTS installation (id TEXT NOT NULL, secret TEXT NOT NULL, siblings TEXT NOT NULL)'

/**
 * Gives the mark and the schema version of an existing file, without changing it. Files of version 0.1.0 have no mark.
 * @throws {Error} SQLite cannot read the file
 */
export function markOfFile(file: string): { readonly mark: StoreMark | null; readonly version: number } {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const { user_version: version } = database.prepare('PRAGMA user_version').get() as { user_version: number }
    return { mark: markIn(database), version }
  } finally {
    database.close()
  }
}

/**
 * Marks an open file that has no mark yet.
 * @throws {Error} it has the mark of another installation
 */
export function checkMark(database: DatabaseSync, file: string, own: Installation): void {
  const mark = markIn(database)
  if (!mark) {
    database.exec(TABLE)
    database.prepare("INSERT INTO installation VALUES (?, '', '[]')").run(own.id)
    return
  }
  const problem = explainMismatch(file, mark, own)
  if (problem) throw new Error(problem)
}

/** Notes in a marked file which files are beside it. */
export function noteSiblings(file: string, siblings: readonly string[]): void {
  const database = new DatabaseSync(file, { timeout: 2_000 })
  try {
    const text = JSON.stringify(siblings)
    const { siblings: noted } = database.prepare('SELECT siblings FROM installation').get() as { siblings: string }
    if (noted !== text) database.prepare('UPDATE installation SET siblings = ?').run(text)
  } finally {
    database.close()
  }
}

function markIn(database: DatabaseSync): StoreMark | null {
  if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'installation'").get()) return null
  const row = database.prepare("SELECT id, NULLIF(secret, '') AS madeWith, siblings FROM installation").get() as
    | { id: string; madeWith: string | null; siblings: string }
    | undefined
  return row ? { ...row, siblings: JSON.parse(row.siblings) as string[] } : null
}
