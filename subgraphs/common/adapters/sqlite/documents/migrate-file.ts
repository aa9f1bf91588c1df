import { constants, copyFileSync, renameSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { Log } from '../../../process/log.ts'
import { Unfit } from '../../../process/opening.ts'
import { type AnyDocument, currentVersion, type Kind, migrated, newerKind } from '../../documents/kinds.ts'
import { encodeDocument, parseDocument, type StoredObject, toStored, withDates } from '../../documents/stored-value.ts'
import { NewerKind } from '../database.ts'
import { nameTable } from './tables.ts'

/** Documents in memory at once. */
const PAGE = 256
const TABLE = 'CREATE TABLE IF NOT EXISTS schema_versions (kind TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID'

/**
 * Brings the documents of a file to the current version of their kinds, in one transaction, after copying the file;
 * then notes the versions. Nobody else may have the file open. A file without the note comes from version 0.1.0, where
 * each kind has version 1.
 * @throws {NewerKind} a kind is newer than this program knows
 */
export function migrateFile(file: string, kinds: readonly Kind[], log: Log): void {
  const database = new DatabaseSync(file)
  try {
    const noted = versionsIn(database)
    for (const kind of kinds) {
      const problem = newerKind(file, kind, noted.get(kind.name) ?? 1)
      if (problem) throw new NewerKind(problem)
    }
    const isThere = database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?")
    const older = kinds.filter((kind) => isThere.get(unquoted(kind)) && (noted.get(kind.name) ?? 1) < currentVersion(kind))
    if (older.length > 0) {
      const copy = copyBeside(database, file)
      log.warn(
        { file, copy, kinds: older.map(({ name }) => name) },
        'migrating the documents to the version of this program; the copy keeps them as they were',
      )
    }
    const unnoted = kinds.filter((kind) => noted.get(kind.name) !== currentVersion(kind))
    if (unnoted.length === 0) return
    database.exec('BEGIN IMMEDIATE')
    database.exec(TABLE)
    for (const kind of older) migrateKind(database, kind, noted.get(kind.name) ?? 1)
    const note = database.prepare('INSERT INTO schema_versions VALUES (?, ?) ON CONFLICT (kind) DO UPDATE SET version = excluded.version')
    for (const kind of unnoted) note.run(kind.name, currentVersion(kind))
    database.exec('COMMIT')
  } finally {
    // Rolls back a transaction that was not committed.
    database.close()
  }
}

function versionsIn(database: DatabaseSync): ReadonlyMap<string, number> {
  if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_versions'").get()) return new Map()
  const rows = database.prepare('SELECT kind, version FROM schema_versions').all() as { kind: string; version: number }[]
  return new Map(rows.map(({ kind, version }) => [kind, version]))
}

function migrateKind(database: DatabaseSync, kind: Kind, from: number): void {
  const table = nameTable(kind)
  const page = database.prepare(`SELECT id, doc FROM ${table} WHERE id > ? ORDER BY id LIMIT ${PAGE}`)
  const write = database.prepare(`UPDATE ${table} SET doc = ? WHERE id = ?`)
  for (let after = ''; ; ) {
    const rows = page.all(after) as { id: string; doc: string }[]
    for (const { id, doc } of rows) {
      const document = withDates(parseDocument(doc)) as AnyDocument
      write.run(encodeDocument(toStored(migrated(document, kind, from), kind.name) as StoredObject), id)
    }
    if (rows.length < PAGE) return
    after = rows.at(-1)!.id
  }
}

/**
 * Copies all data of the file and its log. The copy gets its name only when it is complete.
 * @throws {Unfit} another process reads the file, so that the log cannot be moved into it
 */
function copyBeside(database: DatabaseSync, file: string): string {
  const { busy } = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
  if (busy) throw new Unfit([`${file} is being read by another process, such as a backup`])
  const copy = `${file}.before-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
  try {
    copyFileSync(file, `${copy}.part`, constants.COPYFILE_FICLONE)
    renameSync(`${copy}.part`, copy)
  } catch (error) {
    rmSync(`${copy}.part`, { force: true })
    throw error
  }
  return copy
}

function unquoted(kind: Kind): string {
  return nameTable(kind).replaceAll('"', '')
}
