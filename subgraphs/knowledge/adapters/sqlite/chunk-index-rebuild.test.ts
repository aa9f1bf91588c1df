import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { plainChunk } from '../../../../test/support/data/chunks.ts'
import { temporaryFolder } from '../../../../test/support/data/temporary-folder.ts'
import { silentLog } from '../../../common/process/log.ts'
import type { ChunkIndex, IndexedChunk, ToTerms } from '../../ports/chunk-index.ts'
import { openSqliteChunkIndex } from './chunk-index.ts'

const folder = temporaryFolder()

const collection = { organizationId: 'org_a', collectionId: 'col_a', dimensions: 8 }
const document = { organizationId: 'org_a', collectionId: 'col_a', documentId: 'doc_1', generation: 'g1', attributes: {} }
const signal = new AbortController().signal
const toTerms: ToTerms = async (chunks) => chunks.map(({ text }) => ({ words: text.split(' '), grams: [] }))

function createChunk(ordinal: number, text: string): IndexedChunk {
  const vector = Float32Array.from({ length: 8 }, (_, i) => (i === ordinal % 8 ? 1 : 0.1))
  return plainChunk(`chunk-${ordinal}`, ordinal, text, { context: 'about', headingPath: ['A'], vector, words: text.split(' '), grams: [] })
}

/** Creates an index file with 300 chunks, more than one step takes. `tamper` changes the file while it is closed. */
async function newFile(name: string, tamper: (db: DatabaseSync) => void = () => undefined): Promise<string> {
  const file = join(folder, name)
  {
    await using index = await openSqliteChunkIndex({ file, log: silentLog })
    await index.createCollection(collection)
    const chunks = Array.from({ length: 300 }, (_, i) => createChunk(i, i % 3 ? 'harbour cedar' : 'harbour'))
    await index.put(document, chunks.slice(0, 256))
    await index.put(document, chunks.slice(256))
  }
  const db = new DatabaseSync(file)
  tamper(db)
  db.close()
  return file
}

async function rebuilt(index: ChunkIndex, terms: ToTerms = toTerms): Promise<void> {
  let after: string | null = null
  do after = (await index.rebuild(after, terms, signal)).next
  while (after !== null)
}

const search = async (index: ChunkIndex) => {
  const query = { collectionId: 'col_a', vector: createChunk(5, '').vector, words: ['cedar'], grams: [], candidates: 1000, filter: null }
  return (await index.search(query, signal)).toSorted((a, b) => (a.chunkId < b.chunkId ? -1 : 1))
}

it('rebuilds terms, counts and positions from the chunks and their vectors', async () => {
  const whole = await newFile('whole.sqlite')
  await using intact = await openSqliteChunkIndex({ file: whole, log: silentLog })
  const file = await newFile('torn.sqlite', (db) => {
    db.exec("UPDATE collections SET chunks = 7, words = 1; DELETE FROM terms_1 WHERE term = 'wcedar'")
  })
  await using index = await openSqliteChunkIndex({ file, log: silentLog })
  const expected = await search(intact)
  expect(await search(index)).not.toEqual(expected)
  await rebuilt(index)
  expect(await search(index)).toEqual(expected)
})

it('discards an interrupted rebuild', async () => {
  const file = await newFile('broken-off.sqlite')
  let next: string | null
  {
    await using index = await openSqliteChunkIndex({ file, log: silentLog })
    next = (await index.rebuild(null, toTerms, signal)).next
  }
  const rows = () => {
    const db = new DatabaseSync(file)
    const found = db.prepare('SELECT collection_id FROM collections').all()
    db.close()
    return found
  }
  expect(rows()).toHaveLength(2)
  await using index = await openSqliteChunkIndex({ file, log: silentLog })
  expect(rows()).toEqual([{ collection_id: 'col_a' }])
  // The next rebuild starts the collection again.
  let chunks = 0
  while (next !== null) {
    const step = await index.rebuild(next, toTerms, signal)
    chunks += step.chunks
    next = step.next
  }
  expect(chunks).toBeGreaterThanOrEqual(300)
  expect(await search(index)).toHaveLength(300)
})
