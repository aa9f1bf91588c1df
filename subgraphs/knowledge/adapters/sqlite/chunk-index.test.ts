import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { seeded, wordSource } from '../../../../bench/support/words.ts'
import { COLLECTION, coverage, createChunk, createDocument, openCollection } from '../../../../test/support/data/chunks.ts'
import { temporaryFolder } from '../../../../test/support/data/temporary-folder.ts'
import { silentLog } from '../../../common/process/log.ts'
import { words } from '../../domain/text/text-analysis.ts'
import type { ToTerms } from '../../ports/chunk-index.ts'
import { openSqliteChunkIndex } from './chunk-index.ts'
import { SMALL_COLLECTION } from './tables/chunk-index-postings.ts'

const signal = new AbortController().signal
const folder = temporaryFolder()

it('refuses searches of an organization with too many queued searches, but none of its other reads', async () => {
  const options = { file: join(folder, 'index.sqlite'), log: silentLog }
  {
    await using index = await openSqliteChunkIndex(options)
    for (const of of ['a', 'b']) await index.createCollection({ organizationId: `org_${of}`, collectionId: `col_${of}`, dimensions: 2 })
  }
  await using index = await openSqliteChunkIndex(options)
  await index.createCollection({ organizationId: 'org_c', collectionId: 'col_c', dimensions: 2 })
  const search = (collectionId: string) => {
    const query = { collectionId, vector: null, words: ['cedar'], grams: [], candidates: 10, filter: null }
    return index.search(query, new AbortController().signal)
  }
  const searches = Array.from({ length: 300 }, () => search('col_a'))
  const others = [
    search('col_b'),
    search('col_c'),
    search('col_none'),
    index.ordinals('col_a', 'doc_1', 'g1'),
    index.get('col_a', ['chunk_1']),
    index.hasCollection('col_a'),
    index.listCollections('', 10),
  ]
  const settled = await Promise.allSettled(searches)
  // Two run and 256 wait.
  expect(settled.map(({ status }) => status)).toEqual([...Array(258).fill('fulfilled'), ...Array(42).fill('rejected')])
  expect(settled.at(-1)).toMatchObject({
    reason: { code: 'service_unavailable', message: expect.stringContaining('of your organization') },
  })
  expect(await Promise.all(others)).toEqual([[], [], [], [], [], true, []])
})

it('word search equals scoring each chunk while a collection grows, shrinks and is rebuilt', async () => {
  const random = seeded(7)
  const draw = wordSource(random, ['en'])
  const file = join(folder, 'growing.sqlite')
  await using collection = await openCollection(() => openSqliteChunkIndex({ file, log: silentLog }), 20)
  const { index, searchText } = collection
  const texts = new Map<string, string>()
  const put = async (documentId: string, count: number) => {
    const chunks = Array.from({ length: count }, (_, i) => createChunk(Array.from({ length: 20 }, draw).join(' '), i, documentId))
    await index.put(createDocument(documentId), chunks)
    for (const { chunkId, text } of chunks) texts.set(chunkId, text)
  }
  const expectBest = async () => {
    for (let n = 0; n < 10; n++) {
      const query = [...texts.values()][Math.floor(random() * texts.size)]!.split(' ').slice(0, 6).join(' ')
      const found = await searchText(query)
      const exact = coverage([...texts.values()], query, words)
      const byId = new Map([...texts.keys()].map((id, i) => [id, exact[i]!]))
      for (const { chunkId, wordCoverage } of found) expect(wordCoverage).toBeCloseTo(byId.get(chunkId)!, 6)
      const sumOfBest = (scores: readonly number[]) =>
        scores
          .toSorted((a, b) => b - a)
          .slice(0, 10)
          .reduce((sum, score) => sum + score, 0)
      expect(sumOfBest(found.map(({ wordCoverage }) => wordCoverage))).toBeGreaterThan(0.98 * sumOfBest(exact))
    }
  }
  const hasPostings = () => {
    const db = new DatabaseSync(file, { readOnly: true })
    const found = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'word_postings_1'").get()
    db.close()
    return found !== undefined
  }
  for (const n of [1, 2]) await put(`doc_${n}`, SMALL_COLLECTION / 2)
  await expectBest()
  expect(hasPostings()).toBe(false)
  await put('doc_3', 200)
  await expectBest()
  expect(hasPostings()).toBe(true)
  await put('doc_2', 250)
  await index.deleteDocument(COLLECTION, 'doc_1')
  for (const id of [...texts.keys()]) if (id.startsWith('doc_1-')) texts.delete(id)
  await expectBest()
  const toTerms: ToTerms = async (chunks) => chunks.map(({ text }) => ({ words: words(text), grams: [] }))
  for (let after = (await index.rebuild(null, toTerms, signal)).next; after !== null; )
    after = (await index.rebuild(after, toTerms, signal)).next
  await expectBest()
})

it('warns that a collection of more than 200,000 chunks is large', async () => {
  const file = join(folder, 'large.sqlite')
  await using collection = await openCollection(() => openSqliteChunkIndex({ file, log: silentLog }), 1)
  await collection.index.put(createDocument('doc_1'), [createChunk('sultan', 0)])
  const sized = async (chunks: number) => {
    const db = new DatabaseSync(file)
    db.prepare('UPDATE collections SET chunks = ?').run(chunks)
    db.close()
    return collection.index.listCollections('', 10)
  }
  expect(await sized(200_000)).toEqual([{ collectionId: COLLECTION, chunks: 200_000 }])
  expect(await sized(200_001)).toEqual([{ collectionId: COLLECTION, chunks: 200_001, isLarge: true }])
})
