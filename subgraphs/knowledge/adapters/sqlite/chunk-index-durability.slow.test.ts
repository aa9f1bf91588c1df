import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import { expect, it } from 'vitest'
import { COLLECTION, createChunk, createDocument, DIMENSIONS, openCollection } from '../../../../test/support/data/chunks.ts'
import { rawCopies } from '../../../../test/support/data/raw-files.ts'
import { temporaryFolder } from '../../../../test/support/data/temporary-folder.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { full } from '../../../../test/support/soak.ts'
import { silentLog } from '../../../common/process/log.ts'
import { words } from '../../domain/text/text-analysis.ts'
import { openSqliteChunkIndex } from './chunk-index.ts'
import { SMALL_COLLECTION } from './tables/chunk-index-postings.ts'

const WRITE_UNTIL_KILLED = fileURLToPath(new URL('__fixtures__/write-until-killed.ts', import.meta.url))
const KILLS = full(50)
const MOST_LINES = 400
const CHUNKS_PER_DOCUMENT = 20

const folder = temporaryFolder()
const signal = new AbortController().signal

it('preserves acknowledged writes, and no partial document, when its process is killed repeatedly', async () => {
  const file = join(folder, 'killed.sqlite')
  const acknowledged = new Map<string, string>()
  for (let kill = 0; kill < KILLS; kill++) {
    const child = spawn(process.execPath, [WRITE_UNTIL_KILLED, file, String(kill)], { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(child, 'exit')
    const killedAt = 1 + Math.floor(Math.random() * MOST_LINES)
    let lines = 0
    // Lines that were written before the kill are still read, because they were acknowledged, too.
    for await (const line of createInterface({ input: child.stdout })) {
      const [what, name] = line.split(' ') as [string, string]
      acknowledged.set(name, what)
      if (++lines === killedAt) child.kill('SIGKILL')
    }
    await exited

    await using index = await openSqliteChunkIndex({ file, log: silentLog })
    const generations = []
    for (let after = ''; ; after = generations.at(-1)!.documentId) {
      const page = await index.listGenerations(COLLECTION, after, 1_000)
      generations.push(...page)
      if (page.length < 1_000) break
    }
    const whole = { generation: 'g1', chunks: CHUNKS_PER_DOCUMENT, lastOrdinal: CHUNKS_PER_DOCUMENT - 1 }
    expect(generations).toEqual(generations.map(({ documentId }) => ({ documentId, ...whole })))
    const there = new Set(generations.map(({ documentId }) => documentId))
    expect(await index.listCollections('', 10)).toEqual([{ collectionId: COLLECTION, chunks: there.size * CHUNKS_PER_DOCUMENT }])
    for (const [name, what] of acknowledged) {
      // A deletion may have reached the file without its acknowledgment.
      if (what === 'gone' || !isDeletedNext(name)) expect([name, there.has(name)]).toEqual([name, what !== 'gone'])
    }
    for (const [name] of [...acknowledged].filter(([, what]) => what === 'again').slice(-5)) {
      const filter = { op: 'eq', field: 'document_id', value: name } as const
      const query = { collectionId: COLLECTION, filter, candidates: 100, vector: null, words: words('second'), grams: [] }
      expect(await index.search(query, signal)).toHaveLength(CHUNKS_PER_DOCUMENT)
    }
    expectConsistent(file)
  }
}, 600_000)

/** Repeats the choice of `write-until-killed.ts`. */
function isDeletedNext(name: string): boolean {
  return Number(name.split('-')[2]) % 3 === 2
}

/** Expects that every chunk has a vector, postings and its share in the counts of terms. */
function expectConsistent(file: string): void {
  const db = new DatabaseSync(file)
  const count = (sql: string) => Object.values(db.prepare(sql).get()!)[0]
  const chunks = count('SELECT count(*) FROM chunks_1')
  expect(count('SELECT count(*) FROM quantized_vectors_1 v JOIN chunks_1 c ON c.id = v.id')).toBe(chunks)
  expect(count('SELECT count(*) FROM quantized_vectors_1')).toBe(chunks)
  if (count('SELECT has_postings FROM collections')) {
    db.exec("INSERT INTO word_postings_1 (word_postings_1) VALUES ('integrity-check')")
    expect(count('SELECT count(*) FROM word_postings_1_docsize')).toBe(chunks)
  }
  expect(count("SELECT chunks FROM terms_1 WHERE term = 'wsultan'")).toBe(chunks)
  expect(count('PRAGMA integrity_check')).toBe('ok')
  db.close()
}

it('erases the text, the terms, the postings and the vector of what is deleted or replaced', async () => {
  const folderOfOne = mkdtempSync(join(folder, 'erased-'))
  const file = join(folderOfOne, 'index.sqlite')
  await using collection = await openCollection(() => openSqliteChunkIndex({ file, log: silentLog }), 100)
  const { index, searchText } = collection
  const secret = 'Zorblaxian'
  /** The vector's quantized components are the text. */
  const vectorOf = (text: string) => {
    const raw = Float32Array.from(Buffer.from(text.padEnd(DIMENSIONS, '\x7f')))
    return raw.map((x) => x / Math.hypot(...raw))
  }
  const put = (i: number, text: string, vector: string) => {
    const chunk = { ...createChunk(`${text} harbour sultan cedar`, i, `doc_${i}`), tokenStates: null, vector: vectorOf(vector) }
    return index.put(createDocument(`doc_${i}`), [chunk])
  }
  for (let i = 0; i < 60; i++) await (i % 3 ? put(i, 'lamp', `kept vector ${i}`) : put(i, `${secret} Quixomat${i}`, `hidden vector ${i}`))
  // More than a small collection has, so that FTS5 indexes the words.
  for (let i = 100; i < 100 + SMALL_COLLECTION; i += 256)
    await index.put(
      createDocument('doc_others'),
      Array.from({ length: 256 }, (_, j) => createChunk('ship', i + j, 'doc_others')),
    )
  const copies = () => rawCopies(folderOfOne, [secret, 'zorblaxian', 'Quixomat', 'quixomat', 'hidden vector'])
  expect(Object.values(copies()).flatMap((found) => Object.keys(found))).toEqual(
    expect.arrayContaining([secret, 'zorblaxian', 'Quixomat', 'quixomat', 'hidden vector']),
  )

  for (let i = 0; i < 60; i += 3) await (i % 2 ? index.deleteDocument(COLLECTION, `doc_${i}`) : put(i, 'lamp', `kept vector ${i}`))
  await eventually(() => isDeepStrictEqual(copies(), {}), 60_000)
  expect(await searchText(secret)).toEqual([])
  expect(await searchText('lamp')).toHaveLength(50)
  for (const { documentId } of await index.listGenerations(COLLECTION, '', 1_000)) await index.deleteDocument(COLLECTION, documentId)
  const db = new DatabaseSync(file, { readOnly: true })
  // Empty pages of FTS5 have 4 bytes. Records 1 and 10 are its totals and its structure.
  const postings = db.prepare('SELECT count(*) AS n FROM word_postings_1_data WHERE id NOT IN (1, 10) AND length(block) > 4').get()
  expect([postings, db.prepare('SELECT count(*) AS n FROM terms_1').get()]).toEqual([{ n: 0 }, { n: 0 }])
  db.close()
}, 120_000)
