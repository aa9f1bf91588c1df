import type { DatabaseSync } from 'node:sqlite'
import type { ChunkCandidate, ChunkQuery } from '../../ports/chunk-index.ts'
import { Bm25 } from './bm25.ts'
import { eligibleChunks } from './chunk-index-eligible.ts'
import { refuse } from './chunk-index-refusal.ts'
import { findCollection, nameTables, type Tables } from './tables/chunk-index-schema.ts'
import { VectorCache } from './vector-cache.ts'

/**
 * Maximum entries of a query's rarest words that FTS5 scores, in about 10 ms. Other words, which most chunks have, only
 * affect the scores of chunks that these words find.
 */
const MAX_SCORED = 20_000
/** The cache of this thread and its file. */
const cache = new VectorCache()

/**
 * Runs in one read transaction, so that all figures are of the same state of the collection. Vectors and words find
 * candidates. 3-grams only score them, except in a small collection.
 */
export function search(db: DatabaseSync, query: ChunkQuery): readonly ChunkCandidate[] {
  const { vector, anchor, candidates } = query
  const collection = findCollection(db, query.collectionId)
  if (!collection) return []
  for (const each of [vector, anchor]) {
    if (each && each.length !== collection.dimensions)
      refuse('invalid_request', `The query's vector has ${each.length} components; the collection's have ${collection.dimensions}.`)
  }
  if (collection.chunks === 0) return []

  const tables = nameTables(collection)
  const eligible = query.filter ? eligibleChunks(db, tables, query.filter) : null
  const bm25 = new Bm25(db, tables, collection, query)
  const vectors = vector || anchor ? cache.open(db, tables, collection) : null
  const nearest = new Set(vector ? vectors!.nearest(vector, candidates, eligible) : [])
  const scored = (ids: Iterable<number>) =>
    readRows(db, tables, ids).map(({ id, words, grams, counts, ...row }): Scored => {
      const coverage = bm25.coverage(counts, { words, grams })
      return {
        id,
        ...row,
        cosine: vector ? vectors!.cosine(vector, id) : null,
        anchorCosine: anchor ? vectors!.cosine(anchor, id) : null,
        wordCoverage: coverage.words,
        gramCoverage: coverage.grams,
      }
    })
  const found = collection.hasPostings
    ? scored(nearest.union(new Set(findByWords(db, tables, bm25.rarestWords(MAX_SCORED), candidates, eligible))))
    : bestOf(scored(eligible ?? listChunks(db, tables)), nearest, candidates)
  return found.map(({ id: _, ...candidate }) => candidate)
}

interface Scored extends ChunkCandidate {
  readonly id: number
}

/**
 * Returns candidates from all chunks of a small collection: the nearest, and those with the best scores by words and by
 * 3-grams.
 */
function bestOf(all: readonly Scored[], nearest: ReadonlySet<number>, candidates: number): readonly Scored[] {
  const best = new Set(nearest)
  for (const kind of ['wordCoverage', 'gramCoverage'] as const) {
    const having = all.filter((chunk) => chunk[kind] > 0).sort((a, b) => b[kind] - a[kind] || a.id - b.id)
    for (const { id } of having.slice(0, candidates)) best.add(id)
  }
  return all.filter(({ id }) => best.has(id))
}

function listChunks(db: DatabaseSync, { chunks }: Tables): readonly number[] {
  return db
    .prepare(`SELECT id FROM ${chunks}`)
    .all()
    .map(({ id }) => Number(id))
}

/** Returns the IDs of the chunks with the best scores for words, given by their IDs. */
function findByWords(
  db: DatabaseSync,
  { postings }: Tables,
  words: readonly number[],
  candidates: number,
  eligible: ReadonlySet<number> | null,
): readonly number[] {
  if (words.length === 0) return []
  // With `+`, SQLite reads the postings once, and not once per eligible chunk. Sorting by `rank` takes half as long
  // again.
  const only = eligible ? 'AND +rowid IN (SELECT value FROM json_each(?))' : ''
  const rows = db
    .prepare(`SELECT rowid AS id, bm25(${postings}) AS score FROM ${postings} WHERE ${postings} MATCH ? ${only} ORDER BY score LIMIT ?`)
    .all(words.join(' OR '), ...(eligible ? [`[${[...eligible].join()}]`] : []), candidates)
  return rows.map(({ id }) => Number(id))
}

interface Row extends Pick<ChunkCandidate, 'chunkId' | 'documentId' | 'generation' | 'language'> {
  readonly id: number
  readonly words: number
  readonly grams: number
  readonly counts: Uint8Array
}

function readRows(db: DatabaseSync, tables: Tables, ids: Iterable<number>): readonly Row[] {
  const rows = db
    .prepare(
      `SELECT c.id, c.chunk_id AS chunkId, d.document_id AS documentId, d.generation, c.language, c.words, c.grams, c.counts
       FROM json_each(?) wanted CROSS JOIN ${tables.chunks} c ON c.id = wanted.value JOIN ${tables.documents} d ON d.id = c.document`,
    )
    .all(`[${Uint32Array.from(ids).sort().join()}]`)
  return rows as unknown as Row[]
}
