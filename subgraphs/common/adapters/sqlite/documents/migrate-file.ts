import { setImmediate as nextTick } from 'node:timers/promises'
import type { Log } from '../../../process/log.ts'
import type { AnyDocument, Kind } from '../../documents/kinds.ts'
import { type KindRecord, type MigratedStore, migrate } from '../../documents/migrate.ts'
import { encodeDocument, parseDocument, type StoredObject, toStored, withDates } from '../../documents/stored-value.ts'
import { Connection, toOpeningFailure, toStorageFailure } from '../database.ts'
import { nameTable } from './tables.ts'

/** Limit of documents in memory at once. */
const PAGE = 256
const TABLE = 'CREATE TABLE IF NOT EXISTS schema_versions (kind TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID'

/**
 * Migrates a file that no other process has open, in one transaction.
 * @throws {Error} as `migrate`, or the file is corrupted
 * @throws {Unfit} the storage fails
 */
export async function migrateFile(file: string, kinds: readonly Kind[], log: Log): Promise<void> {
  // Closing the connection rolls back a transaction that was not committed.
  using connection = new Connection(file, { readOnly: false })
  const { database } = connection
  const hasTable = (name: string) => !!database.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name)
  const hasDocuments = (name: string) => hasTable(`documents_${name}`)
  const store: MigratedStore = {
    name: file,
    async alone(run) {
      database.exec('BEGIN IMMEDIATE')
      await run()
      database.exec('COMMIT')
    },
    async records() {
      if (!hasTable('schema_versions')) return new Map()
      const rows = connection.prepare('SELECT kind, version FROM schema_versions').all<[string, number]>()
      return new Map(rows.map(([kind, version]): [string, KindRecord] => [kind, { version }]))
    },
    async record(kind, { version }) {
      database.exec(TABLE)
      const upsert = 'INSERT INTO schema_versions VALUES (?, ?) ON CONFLICT (kind) DO UPDATE SET version = excluded.version'
      connection.prepare(upsert).run(kind, version)
    },
    earlierPrograms: async () => null,
    async count(name) {
      if (!hasDocuments(name)) return 0
      return connection.prepare(`SELECT count(*) FROM ${nameTable({ name })}`).get<[number]>()![0]
    },
    async convert(name, convert, report) {
      const table = nameTable({ name })
      const page = connection.prepare(`SELECT id, doc FROM ${table} WHERE id > ? ORDER BY id LIMIT ${PAGE}`)
      const write = connection.prepare(`UPDATE ${table} SET doc = ? WHERE id = ?`)
      let done = 0
      for (let after = ''; ; await nextTick()) {
        const rows = page.all<[string, string]>(after)
        for (const [id, text] of rows) {
          const document = convert(withDates(parseDocument(text)) as AnyDocument)
          write.run(encodeDocument(toStored(document, name) as StoredObject), id)
        }
        done += rows.length
        report(done)
        if (rows.length < PAGE) return
        after = rows.at(-1)![0]
      }
    },
  }
  try {
    await migrate(store, kinds, log)
  } catch (error) {
    throw toStorageFailure(error) ? toOpeningFailure(file, error) : error
  }
}
