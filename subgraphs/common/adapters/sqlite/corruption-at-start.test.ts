import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findCorruptionAtStart, readEnds } from './corruption-at-start.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kis-check-'))
  file = join(folder, 'a.sqlite')
  const database = new DatabaseSync(file)
  database.exec(`
    CREATE TABLE numbered (text TEXT); CREATE TABLE keyed (a TEXT, b TEXT, PRIMARY KEY (b, a)) WITHOUT ROWID; CREATE TABLE empty (a);
    CREATE VIRTUAL TABLE words USING fts5(text, content='', contentless_delete=1, detail=none);
    INSERT INTO numbered (rowid, text) VALUES (9223372036854775807, 'the largest number of SQLite');
    INSERT INTO words (rowid, text) VALUES (9223372036854775807, 'word');
    WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 500)
    INSERT INTO keyed SELECT value, hex(zeroblob(500)) || value FROM n`)
  database.close()
})
afterEach(() => rmSync(folder, { recursive: true }))

function opened<T>(run: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return run(database)
  } finally {
    database.close()
  }
}

it('reads both ends of tables of every kind, with numbers above the safe integers of JavaScript', () => {
  expect(opened((database) => findCorruptionAtStart(database, file))).toBe(null)
  opened(readEnds)
})

it('reports in one line what SQLite says of an overwritten page', () => {
  const bytes = readFileSync(file)
  bytes.fill(7, bytes.length - 4096)
  writeFileSync(file, bytes)
  expect(opened((database) => findCorruptionAtStart(database, file))).toMatch(/^(?!\*).+$/)
  writeFileSync(file, bytes.fill(7, 4096))
  expect(() => opened(readEnds)).toThrow('malformed')
})
