import type { DatabaseSync } from 'node:sqlite'
import { decodeCounts } from './chunk-index-counts.ts'
import { earlierTables, nameTables, type Tables } from './chunk-index-schema.ts'
import { aligned } from './segments/kernels.ts'
import { addSegment, renewSegment, type SegmentPassage, tidySegments } from './segments/segment-writer.ts'
import { packVector, vectorReader } from './segments/vectors.ts'

/** Chunks taken over in one step: about a quarter of a second. */
const STEP = 2_048
/** Vectors of versions 0 and 1 are in blocks of 128: their lengths (float32), then their components (int8). */
const BLOCK = 128
const LENGTHS_BYTES = BLOCK * 4

/**
 * Takes one step in replacing what earlier versions wrote: tables of versions 0 and 1, and segments of version 2. Gives the
 * chunks that are left of those tables, or of a collection's segments; null: nothing is. May be interrupted after any step.
 */
export function replaceEarlierTables(db: DatabaseSync): number | null {
  const collections = db.prepare('SELECT key, dimensions, chunks FROM collections ORDER BY key').all() as unknown as Collection[]
  const earlier = collections.filter(({ key }) => hasTable(db, earlierTables(key)[1]))
  const [collection] = earlier
  if (!collection) return renewOneSegment(db, collections)
  const { key, dimensions } = collection
  const tables = nameTables({ key })
  const { last, done } = db
    .prepare(`SELECT coalesce(max(id), -1) AS last, count(*) AS done FROM ${tables.vectors}`)
    .get() as unknown as Progress
  const rows = db
    .prepare(`SELECT id, words, grams, counts FROM ${tables.chunks} WHERE id > ? ORDER BY id LIMIT ?`)
    .all(last, STEP) as unknown as ChunkTerms[]
  const [vectors, postings] = earlierTables(key)
  const ids = rows.map(({ id }) => id)
  takeVectors(db, tables, vectors, dimensions, ids)
  const vectorOf = vectorReader(db, tables, dimensions)
  const passages = rows.map((row): SegmentPassage => ({ ...row, counts: toMap(decodeCounts(row.counts)) }))
  addSegment(db, tables, dimensions, passages, vectorOf)
  tidySegments(db, tables, dimensions, vectorOf)
  if (rows.length < STEP) for (const table of [vectors, postings]) db.exec(`DROP TABLE ${table}`)
  return earlier.reduce((sum, { chunks }) => sum + chunks, 0) - done - rows.length
}

/** The first one that version 2 has written. */
function renewOneSegment(db: DatabaseSync, collections: readonly Collection[]): number | null {
  for (const { key, dimensions } of collections) {
    const tables = nameTables({ key })
    const left = renewSegment(db, tables, dimensions, vectorReader(db, tables, dimensions))
    if (left !== null) return left
  }
  return null
}

interface Collection {
  readonly key: number
  readonly dimensions: number
  readonly chunks: number
}

interface Progress {
  readonly last: number
  readonly done: number
}

interface ChunkTerms {
  readonly id: number
  readonly words: number
  readonly grams: number
  readonly counts: Uint8Array
}

function hasTable(db: DatabaseSync, name: string): boolean {
  return db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined
}

/** Every chunk gets a row, which tells how far this has come. A vector that was missing becomes zero. */
function takeVectors(db: DatabaseSync, tables: Tables, earlier: string, dimensions: number, ids: readonly number[]): void {
  const length = aligned(dimensions)
  const read = db.prepare(`SELECT data FROM ${earlier} WHERE block = ?`)
  const write = db.prepare(`INSERT INTO ${tables.vectors} (id, data) VALUES (?, ?)`)
  for (const [block, ofBlock] of Map.groupBy(ids, (id) => Math.floor(id / BLOCK))) {
    const found = read.get(block) as { data: Uint8Array } | undefined
    for (const id of ofBlock) {
      const at = LENGTHS_BYTES + (id % BLOCK) * length
      const components = new Int8Array(dimensions)
      if (found) components.set(new Int8Array(found.data.buffer, found.data.byteOffset + at, dimensions))
      write.run(id, packVector(components))
    }
  }
}

function toMap(counts: Uint32Array): ReadonlyMap<number, number> {
  const map = new Map<number, number>()
  for (let at = 0; at < counts.length; at += 2) map.set(counts[at]!, counts[at + 1]!)
  return map
}
