import type { DatabaseSync } from 'node:sqlite'
import { createPostings, type EncodedChunk, readWordIds, SMALL_COLLECTION, writePostings } from './chunk-index-postings.ts'
import { createSearchTables, nameTables } from './chunk-index-schema.ts'

/** Chunks per statement. */
const PAGE = 256
/** Tables of versions 0 to 3. Each collection had one of the first two. */
const EARLIER = ['postings', 'segments', 'segment_data', 'lists', 'vectors', 'int8_vectors'] as const
/**
 * Versions 0 and 1 store vectors in blocks of 128: their lengths (float32), then their components (int8), padded to a
 * multiple of 16.
 */
const BLOCK = 128
/** Versions 2 and 3 store the vector's length (float32) before its components. */
const LENGTH_BYTES = 4

/**
 * Runs one step of about `stepMs` of rebuilding the collections of an earlier version from their chunks. Returns the
 * number of remaining chunks. Null: the rebuild is complete. It may be interrupted after any step.
 */
export function rebuildEarlier(db: DatabaseSync, stepMs: number): number | null {
  const end = performance.now() + stepMs
  const earlier = listEarlier(db)
  for (const [i, collection] of earlier.entries()) {
    while (rebuildPage(db, collection)) if (performance.now() > end) return countLeft(db, earlier.slice(i))
    for (const name of EARLIER) db.exec(`DROP TABLE IF EXISTS ${name}_${collection.key}`)
    if (performance.now() > end) return countLeft(db, earlier.slice(i + 1))
  }
  return null
}

interface Collection {
  readonly key: number
  /** 0: only the collection's tables are left. */
  readonly dimensions: number
  readonly chunks: number
}

function listEarlier(db: DatabaseSync): readonly Collection[] {
  const rows = db
    .prepare(
      `SELECT found.key, coalesce(dimensions, 0) AS dimensions, coalesce(chunks, 0) AS chunks
       FROM (SELECT DISTINCT CAST(substr(name, instr(name, '_') + 1) AS INTEGER) AS key FROM sqlite_schema
             WHERE name GLOB 'segments_[0-9]*' OR name GLOB 'postings_[0-9]*') found LEFT JOIN collections c ON c.key = found.key
       ORDER BY found.key`,
    )
    .all()
  return rows as unknown as Collection[]
}

function countLeft(db: DatabaseSync, [first, ...others]: readonly Collection[]): number {
  if (!first) return 0
  const { vectors } = nameTables(first)
  const done = hasTable(db, vectors) ? Number(db.prepare(`SELECT count(*) AS n FROM ${vectors}`).get()!.n) : 0
  return others.reduce((sum, { chunks }) => sum + chunks, first.chunks - done)
}

/** Returns false if the collection had no chunks left. */
function rebuildPage(db: DatabaseSync, { key, dimensions, chunks }: Collection): boolean {
  if (dimensions === 0) return false
  const tables = nameTables({ key })
  if (!hasTable(db, tables.vectors)) {
    createSearchTables(db, tables)
    if (chunks > SMALL_COLLECTION) createPostings(db, tables, key)
    db.prepare(`UPDATE collections SET last_id = (SELECT coalesce(max(id), 0) FROM ${tables.chunks}) WHERE key = ?`).run(key)
  }
  const rows = db
    .prepare(
      `SELECT id, counts FROM ${tables.chunks} WHERE id > (SELECT coalesce(max(id), -1) FROM ${tables.vectors}) ORDER BY id LIMIT ${PAGE}`,
    )
    .all() as unknown as EncodedChunk[]
  const vectorOf = vectorReader(db, key, dimensions)
  const writeVector = db.prepare(`INSERT INTO ${tables.vectors} (id, data) VALUES (?, ?)`)
  for (const { id } of rows) writeVector.run(id, vectorOf(id) ?? new Int8Array(dimensions))
  if (chunks > SMALL_COLLECTION) writePostings(db, tables, rows, readWordIds(db, tables))
  return rows.length > 0
}

/** Reads the components of a chunk's vector. */
function vectorReader(db: DatabaseSync, key: number, dimensions: number): (id: number) => Uint8Array | undefined {
  if (hasTable(db, `vectors_${key}`)) {
    const padded = Math.ceil(dimensions / 16) * 16
    const read = db.prepare(`SELECT substr(data, ?, ${dimensions}) AS data FROM vectors_${key} WHERE block = ?`)
    return (id) => read.get(BLOCK * LENGTH_BYTES + (id % BLOCK) * padded + 1, Math.floor(id / BLOCK))?.data as Uint8Array | undefined
  }
  const read = db.prepare(`SELECT substr(data, ${LENGTH_BYTES + 1}, ${dimensions}) AS data FROM int8_vectors_${key} WHERE id = ?`)
  return (id) => read.get(id)?.data as Uint8Array | undefined
}

function hasTable(db: DatabaseSync, name: string): boolean {
  return db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== undefined
}
