import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../../../test/support/data/temporary-folder.ts'
import { silentLog } from '../../../common/process/log.ts'
import type { ChunkIndex, ChunkQuery } from '../../ports/chunk-index.ts'
import { openSqliteChunkIndex } from './chunk-index.ts'

const folder = temporaryFolder()

/**
 * A file from the program with index version 3. `col_a` has the chunks 0 to 599 of ten documents with 60 each, without
 * those of `doc_3`, and with two of `doc_5` that were written twice. `col_b` has one chunk, and `col_empty` none.
 */
const VERSION_3 = new URL('./__fixtures__/index-version-3.sqlite.gz', import.meta.url)
const DIMENSIONS = 8
const CHUNKS = 541
const signal = new AbortController().signal

function newFile(name: string): string {
  const file = join(folder, name)
  writeFileSync(file, gunzipSync(readFileSync(VERSION_3)))
  return file
}

const vectorOf = (ordinal: number) => Float32Array.from({ length: DIMENSIONS }, (_, i) => Math.sin(ordinal * (i + 1)) + 0.1)

const search = (index: ChunkIndex, query: Partial<ChunkQuery>) =>
  index.search({ collectionId: 'col_a', vector: null, words: [], grams: [], candidates: 10, filter: null, ...query }, signal)

async function expectRebuilt(index: ChunkIndex, file: string): Promise<void> {
  const words = ['only120', 'harbour']
  const found = await search(index, { vector: vectorOf(120), words, grams: ['onl'], candidates: 3 })
  const best = found.find(({ chunkId }) => chunkId === 'chunk-120')!
  expect(best.cosine).toBeGreaterThan(0.999)
  // The score that the program of that version computed.
  expect(best.wordCoverage).toBeCloseTo(0.4547, 3)
  expect(best.gramCoverage).toBeCloseTo(0.4545, 3)
  expect(found.filter(({ chunkId }) => ['chunk-453', 'chunk-497'].includes(chunkId))).toHaveLength(2)
  expect(await search(index, { words: ['harbour'], candidates: 1_000 })).toHaveLength(CHUNKS - 1)
  expect(await search(index, { words: ['only200'] })).toEqual([])
  expect(await search(index, { words: ['only300'] })).toHaveLength(1)
  const filter = { op: 'eq', field: 'file_name', value: '5.txt' } as const
  expect(await search(index, { vector: vectorOf(1), candidates: 1_000, filter })).toHaveLength(60)
  expect(await search(index, { collectionId: 'col_b', vector: vectorOf(0) })).toHaveLength(1)
  expect((await index.tokenEmbeddings('col_a', ['chunk-120'])).get('chunk-120')).toEqual(Int8Array.of(1, -2, 20))
  expect(await index.listCollections('', 10)).toEqual([
    { collectionId: 'col_a', chunks: CHUNKS - 1 },
    { collectionId: 'col_b', chunks: 1 },
  ])
  const db = new DatabaseSync(file, { readOnly: true })
  const names = db.prepare("SELECT name FROM sqlite_schema WHERE name GLOB 'segment*' OR name GLOB 'lists_*' OR name GLOB 'int8_*'").all()
  expect([names, db.prepare('PRAGMA user_version').get()]).toEqual([[], { user_version: 4 }])
  db.close()
}

it('refuses searches and writes while an index of version 3 is rebuilt, reports progress, and then has the same content', async () => {
  const file = newFile('progress.sqlite')
  const reported: unknown[] = []
  const log = Object.assign(Object.create(silentLog), {
    info: (fields: object, message: string) => void reported.push({ ...fields, message }),
  })
  await using index = await openSqliteChunkIndex({ file, log })
  const document = { organizationId: 'org_a', collectionId: 'col_a', documentId: 'doc_1', generation: 'g1', attributes: {} }
  const refused = await Promise.allSettled([
    search(index, { words: ['harbour'] }),
    index.put(document, []),
    index.deleteDocument('col_a', 'doc_1'),
    index.deleteGeneration('col_a', 'doc_1', 'g1'),
    index.rebuild(null, async () => [], signal),
  ])
  const reason = { code: 'index_rebuilding', message: expect.stringContaining('285 chunks are left') }
  expect(refused).toEqual(refused.map(() => ({ status: 'rejected', reason: expect.objectContaining(reason) })))
  expect(await index.get('col_a', ['chunk-120'])).toMatchObject([{ documentId: 'doc_2' }])
  await index.ping(signal)
  await expect
    .poll(() =>
      search(index, { words: ['harbour'] }).then(
        () => 'served',
        ({ code }) => code,
      ),
    )
    .toBe('served')
  await expectRebuilt(index, file)
  expect(reported).toEqual([
    { file, left: 285, message: expect.stringContaining('being rebuilt') },
    { file, message: 'the chunk index is rebuilt' },
  ])
  await index.deleteDocument('col_a', 'doc_2')
  expect(await search(index, { words: ['only120'] })).toEqual([])
  await index.put(document, [])
})

it('continues a rebuild that was interrupted at any step', async () => {
  const file = newFile('interrupted.sqlite')
  for (let starts = 0; starts < 3; starts++) await (await openSqliteChunkIndex({ file, log: silentLog }))[Symbol.asyncDispose]()
  await using index = await openSqliteChunkIndex({ file, log: silentLog, rebuildFirst: true })
  await expectRebuilt(index, file)
})

it('deletes remains of a rebuild of an earlier version or of a deleted collection', async () => {
  const file = newFile('draft.sqlite')
  const db = new DatabaseSync(file)
  db.exec("UPDATE collections SET collection_id = 'draft:col_x' WHERE collection_id = 'col_b'")
  db.close()
  await using index = await openSqliteChunkIndex({ file, log: silentLog })
  await index.dropCollection('col_a')
  await expect.poll(() => search(index, { words: ['harbour'] }).catch(({ code }) => code)).toEqual([])
  const left = new DatabaseSync(file, { readOnly: true })
  const tables = left.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB '*_[12]'").all()
  left.close()
  expect(tables).toEqual([])
})

it.each(['0.1.0', '0.2.0'])('migrates the index of version %s', async (version) => {
  const data = join(folder, version)
  mkdirSync(data)
  const archive = fileURLToPath(new URL(`../../../../test/frozen/data-${version}.tar.gz`, import.meta.url))
  execFileSync('tar', ['-xzf', archive, '-C', data])
  await using index = await openSqliteChunkIndex({ file: join(data, 'index.sqlite'), log: silentLog, rebuildFirst: true })
  const [{ collectionId } = { collectionId: '' }] = await index.listCollections('', 1)
  const vector = new Float32Array(384).fill(1)
  const found = await search(index, { collectionId, vector, words: ['meal'], candidates: 10 })
  expect(found.map(({ language }) => language).sort()).toEqual(['ar', 'en'])
  // All vectors of multilingual E5 are in one part of the space. This one is far from it.
  for (const { cosine } of found) expect(Math.abs(cosine!)).toBeGreaterThan(0)
  let after: string | null = null
  do
    after = (await index.rebuild(after, async (chunks) => chunks.map(({ text }) => ({ words: text.split(/\W+/), grams: [] })), signal)).next
  while (after !== null)
  expect(await search(index, { collectionId, words: ['Meals'] })).toHaveLength(1)
})
