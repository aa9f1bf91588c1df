import type { DatabaseSync } from 'node:sqlite'
import type { ChunkCandidate, ChunkQuery } from '../../ports/chunk-index.ts'
import { CountReader } from './chunk-index-counts.ts'
import { eligibleChunks } from './chunk-index-eligible.ts'
import { refuse } from './chunk-index-refusal.ts'
import { findCollection, nameTables, type Tables } from './chunk-index-schema.ts'
import { Kernels } from './segments/kernels.ts'
import { lexicalLeg } from './segments/lexical-leg.ts'
import { ListCache } from './segments/list-cache.ts'
import { nearestTo } from './segments/nearest.ts'
import { SegmentCache } from './segments/segment-cache.ts'
import { cosinesOf } from './segments/vectors.ts'

/** Of this thread and its file. */
const kernels = new Kernels()
const cache = new SegmentCache()
const lists = new ListCache()

interface ScoredRow extends ChunkCandidate {
  readonly id: number
}

/** Runs in one read transaction, so that all figures are of the same state of the collection. */
export function search(db: DatabaseSync, query: ChunkQuery): readonly ChunkCandidate[] {
  const collection = findCollection(db, query.collectionId)
  if (!collection) return []
  for (const vector of [query.vector, query.anchor]) {
    if (vector && vector.length !== collection.dimensions)
      refuse('invalid_request', `The query's vector has ${vector.length} components; the collection's have ${collection.dimensions}.`)
  }
  if (collection.chunks === 0) return []

  const tables = nameTables(collection)
  const eligible = query.filter ? eligibleChunks(db, tables, query.filter) : null
  const isEligible = eligible ? (id: number) => eligible.has(id) : () => true
  const segments = cache.open(db, tables)
  const findList = lists.open(db, tables, segments)
  const words = lexicalLeg(db, tables, kernels, collection, 'w', query.words)
  const grams = lexicalLeg(db, tables, kernels, collection, 'g', query.grams)
  const nearest = query.vector
    ? nearestTo(db, tables, kernels, segments, query.vector, query.candidates, { ids: eligible, has: isEligible })
    : new Map<number, number>()
  const lexical = [words, grams].flatMap((leg) => leg.best(segments, findList, query.candidates, isEligible))

  const { rows, counts } = readRows(db, tables, new Set([...nearest.keys(), ...lexical]))
  const ids = rows.map(({ id }) => id)
  const others = ids.filter((id) => !nearest.has(id))
  const cosines = query.vector ? new Map([...nearest, ...cosinesOf(db, tables, kernels, query.vector, others)]) : null
  const anchorCosines = query.anchor ? cosinesOf(db, tables, kernels, query.anchor, ids) : null
  const reader = new CountReader(kernels, [...words.termIds, ...grams.termIds], counts)
  const wordCounts = reader.counts.subarray(0, words.termIds.length)
  const gramCounts = reader.counts.subarray(words.termIds.length)
  const scored = rows.map((row): ScoredRow => {
    reader.read(row.countsBytes)
    return {
      id: row.id,
      chunkId: row.chunkId,
      documentId: row.documentId,
      generation: row.generation,
      language: row.language,
      cosine: cosines ? (cosines.get(row.id) ?? 0) : null,
      anchorCosine: anchorCosines ? (anchorCosines.get(row.id) ?? 0) : null,
      wordCoverage: words.coverage(wordCounts, row.words),
      gramCoverage: grams.coverage(gramCounts, row.grams),
    }
  })

  const found = new Set([
    ...nearest.keys(),
    ...best(scored, query.candidates, (row) => row.wordCoverage),
    ...best(scored, query.candidates, (row) => row.gramCoverage),
  ])
  return scored.filter(({ id }) => found.has(id)).map(({ id: _, ...candidate }) => candidate)
}

function best(rows: readonly ScoredRow[], count: number, toScore: (row: ScoredRow) => number): number[] {
  return rows
    .filter((row) => toScore(row) > 0)
    .sort((a, b) => toScore(b) - toScore(a) || a.id - b.id)
    .slice(0, count)
    .map(({ id }) => id)
}

type Row = {
  readonly id: number
  readonly chunkId: string
  readonly documentId: string
  readonly generation: string
  readonly language: string | null
  readonly words: number
  readonly grams: number
  readonly countsBytes: number
}

/** Chunks, and the counts of their terms one after another: two values for all chunks, as `cosinesOf` reads vectors. */
function readRows(db: DatabaseSync, tables: Tables, ids: ReadonlySet<number>): { rows: readonly Row[]; counts: Uint8Array } {
  const { rows, counts } = db
    .prepare(
      `SELECT json_group_array(json_object('id', c.id, 'chunkId', c.chunk_id, 'documentId', d.document_id, 'generation', d.generation,
         'language', c.language, 'words', c.words, 'grams', c.grams, 'countsBytes', length(c.counts))) AS rows,
         CAST(group_concat(c.counts, '') AS BLOB) AS counts
       FROM json_each(?) wanted CROSS JOIN ${tables.chunks} c ON c.id = wanted.value JOIN ${tables.documents} d ON d.id = c.document`,
    )
    .get(`[${Uint32Array.from(ids).sort().join()}]`) as { rows: string; counts: Uint8Array | null }
  return { rows: JSON.parse(rows) as Row[], counts: counts ?? new Uint8Array() }
}
