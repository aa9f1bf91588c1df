import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, it } from 'vitest'
import { silentLog } from '../../../common/process/log.ts'
import type { ChunkIndex, IndexedChunk } from '../../ports/chunk-index.ts'
import { openSqliteChunkIndex } from './chunk-index.ts'

const folder = mkdtempSync(join(tmpdir(), 'kis-earlier-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const BLOCK = 128
const DIMENSIONS = 8
const PADDED = 16
const PUTS = 9
const PER_PUT = 256

function makeChunk(ordinal: number): IndexedChunk {
  const words = ['harbour', `word${ordinal % 50}`, `only${ordinal}`]
  return {
    chunkId: `chunk-${ordinal}`,
    ordinal,
    text: words.join(' '),
    context: '',
    headingPath: [],
    pageStart: null,
    pageEnd: null,
    charStart: 0,
    charEnd: 10,
    language: 'en',
    vector: Float32Array.from({ length: DIMENSIONS }, (_, i) => Math.sin(ordinal * (i + 1)) + 0.1),
    words,
    grams: [],
  }
}

/** Puts the tables of version 1 in the place of those of now. */
function makeEarlier(file: string): void {
  const db = new DatabaseSync(file)
  db.exec(`CREATE TABLE vectors_1 (block INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
    CREATE VIRTUAL TABLE postings_1 USING fts5(terms, content='', contentless_delete=1, detail=none, tokenize=ascii)`)
  const vectors = db.prepare('SELECT id, data FROM int8_vectors_1 ORDER BY id').all() as { id: number; data: Uint8Array }[]
  for (const [block, members] of Map.groupBy(vectors, ({ id }) => Math.floor(id / BLOCK))) {
    const data = new Uint8Array(BLOCK * 4 + BLOCK * PADDED)
    for (const { id, data: row } of members) {
      data.set(row.subarray(0, 4), (id % BLOCK) * 4)
      data.set(row.subarray(4, 4 + DIMENSIONS), BLOCK * 4 + (id % BLOCK) * PADDED)
    }
    db.prepare('INSERT INTO vectors_1 (block, data) VALUES (?, ?)').run(block, data)
  }
  for (const table of ['int8_vectors_1', 'segments_1', 'segment_data_1', 'lists_1']) db.exec(`DROP TABLE ${table}`)
  db.exec('PRAGMA user_version = 1')
  db.close()
}

/** Takes away what version 2 had not. */
function makeVersion2(file: string): void {
  const db = new DatabaseSync(file)
  db.exec(`ALTER TABLE segment_data_1 DROP COLUMN fine_bits; ALTER TABLE segment_data_1 DROP COLUMN fine_scales; PRAGMA user_version = 2`)
  db.close()
}

async function ask(index: ChunkIndex) {
  const queries = [
    { vector: makeChunk(700).vector, words: ['word7', 'harbour'], candidates: 20 },
    { vector: makeChunk(2_200).vector, words: ['only2100'], candidates: 5 },
  ]
  const found = await Promise.all(
    queries.map((query) => index.search({ collectionId: 'col_a', grams: [], filter: null, ...query }, new AbortController().signal)),
  )
  return found.map((candidates) => candidates.toSorted((a, b) => (a.chunkId < b.chunkId ? -1 : 1)))
}

/** Gives its answers. */
async function fill(file: string) {
  await using index = await openSqliteChunkIndex({ file, log: silentLog })
  await index.createCollection({ organizationId: 'org_a', collectionId: 'col_a', dimensions: DIMENSIONS })
  for (let put = 0; put < PUTS; put++) {
    const document = { organizationId: 'org_a', collectionId: 'col_a', documentId: `doc_${put}`, generation: 'g1', attributes: {} }
    await index.put(
      document,
      Array.from({ length: PER_PUT }, (_, i) => makeChunk(put * PER_PUT + i)),
    )
  }
  await index.deleteDocument('col_a', 'doc_3')
  // Replaces them: their places in an earlier segment are buried, though the chunks have vectors.
  const document = { organizationId: 'org_a', collectionId: 'col_a', documentId: 'doc_5', generation: 'g1', attributes: {} }
  await index.put(document, [makeChunk(5 * PER_PUT), makeChunk(5 * PER_PUT + 1)])
  return ask(index)
}

it.each([
  ['1', makeEarlier],
  ['2', makeVersion2],
])('brings a file of version %s up to date, and answers as before', async (version, make) => {
  const file = join(folder, `index-${version}.sqlite`)
  const before = await fill(file)
  make(file)

  await using index = await openSqliteChunkIndex({ file, log: silentLog })
  expect(await ask(index)).toEqual(before)
  expect(before[1]!.some(({ chunkId }) => chunkId === 'chunk-2100')).toBe(true)
  const db = new DatabaseSync(file, { readOnly: true })
  expect(db.prepare("SELECT name FROM sqlite_schema WHERE name IN ('vectors_1', 'postings_1')").all()).toEqual([])
  expect(db.prepare('SELECT count(*) AS n FROM segment_data_1 WHERE fine_bits IS NULL OR fine_scales IS NULL').get()).toEqual({ n: 0 })
  expect(db.prepare('SELECT sum(buried) AS n FROM segments_1').get()).toEqual({ n: 0 })
  expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: 3 })
  db.close()
})
