import { DatabaseSync } from 'node:sqlite'
import { createSegmentTables, type SegmentTables } from './segments/segment-tables.ts'

/** Milliseconds that a connection waits for another's lock. The writer's longest transaction is far shorter. */
const BUSY_TIMEOUT_MS = 5_000
/** Bytes of the write-ahead log that stay on disk after a checkpoint. */
const WAL_LIMIT_BYTES = 67_108_864

/**
 * SQLite's `user_version`: the version that this program reads and writes. Files of versions 0 and 1 have other tables
 * for vectors and postings, and segments of version 2 lack the second bits of their codes: `chunk-index-earlier.ts` brings both up to date.
 */
export const INDEX_VERSION = 3

/** A collection's row: its tables, and what the scores need of all its chunks. */
export interface CollectionRow {
  readonly key: number
  readonly organizationId: string
  readonly dimensions: number
  readonly chunks: number
  /** Terms of all chunks, with repeats. */
  readonly words: number
  readonly grams: number
}

/**
 * Names of a collection's tables. Each collection has its own, so that no tenant's text affects another's scores, and
 * dropping one is quick. The key is a number of ours; no name contains a caller's text.
 */
export interface Tables extends SegmentTables {
  readonly documents: string
  readonly chunks: string
  readonly vectors: string
  readonly tokenStates: string
  readonly terms: string
}

export function nameTables({ key }: { readonly key: number }): Tables {
  const table = (what: string) => `${what}_${Number(key)}`
  return {
    documents: table('documents'),
    chunks: table('chunks'),
    vectors: table('int8_vectors'),
    tokenStates: table('token_states'),
    terms: table('terms'),
    segments: table('segments'),
    segmentData: table('segment_data'),
    lists: table('lists'),
  }
}

export function openWriter(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS })
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES};
    PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;
    CREATE TABLE IF NOT EXISTS collections (
      key INTEGER PRIMARY KEY AUTOINCREMENT,
      collection_id TEXT NOT NULL UNIQUE,
      organization_id TEXT NOT NULL,
      dimensions INTEGER NOT NULL,
      chunks INTEGER NOT NULL DEFAULT 0,
      words INTEGER NOT NULL DEFAULT 0,
      grams INTEGER NOT NULL DEFAULT 0
    ) STRICT`)
  const collections = db.prepare('SELECT key, collection_id AS collectionId FROM collections').all() as {
    key: number
    collectionId: string
  }[]
  for (const { key, collectionId } of collections) {
    const tables = nameTables({ key })
    // Files of the first layouts lack it.
    createTokenStates(db, tables)
    createSearchTables(db, tables)
    // A rebuild does not survive its process.
    if (isDraft(collectionId)) dropCollectionRow(db, { key })
    else {
      // Files of earlier layouts lack them.
      addColumn(db, tables.chunks, 'context', 'TEXT')
      addColumn(db, tables.segmentData, 'fine_scales', 'BLOB')
      addColumn(db, tables.segmentData, 'fine_bits', 'BLOB')
    }
  }
  return db
}

function addColumn(db: DatabaseSync, table: string, column: string, type: string): void {
  if (db.prepare('SELECT 1 FROM pragma_table_info(?) WHERE name = ?').get(table, column)) return
  db.exec(`ALTER TABLE ${table} ADD COLUMN ${column} ${type}`)
}

/** The file is not mapped: its pages would count as this process's memory, once for each thread, and save no CPU. */
export function openReader(file: string): DatabaseSync {
  return new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS })
}

/**
 * While a collection is rebuilt, its new tables belong to a collection with this prefix, which takes every write too.
 * Ids of collections never begin with it.
 */
const DRAFT = 'draft:'

export function draftName(collectionId: string): string {
  return DRAFT + collectionId
}

function isDraft(collectionId: string): boolean {
  return collectionId.startsWith(DRAFT)
}

/** The first collection after `after` that is not a draft. */
export function nextCollection(db: DatabaseSync, after: string): string | undefined {
  const row = db
    .prepare(`SELECT collection_id FROM collections WHERE collection_id > ? AND collection_id NOT GLOB '${DRAFT}*' ORDER BY 1 LIMIT 1`)
    .get(after)
  return row?.collection_id as string | undefined
}

export function findCollection(db: DatabaseSync, collectionId: string): CollectionRow | undefined {
  const row = db
    .prepare('SELECT key, organization_id AS organizationId, dimensions, chunks, words, grams FROM collections WHERE collection_id = ?')
    .get(collectionId)
  return row as CollectionRow | undefined
}

/**
 * A term is known by a number, and both legs share one index: a term's text starts with `w` for words and `g` for
 * 3-grams. A chunk's `counts` has its terms, for its exact scores and its deletion; the lists of segments have the chunks
 * of each term, for finding them.
 */
export function createTables(db: DatabaseSync, tables: Tables): void {
  db.exec(`
    CREATE TABLE ${tables.documents} (
      id INTEGER PRIMARY KEY,
      document_id TEXT NOT NULL,
      generation TEXT NOT NULL,
      attributes TEXT NOT NULL,
      UNIQUE (document_id, generation)
    ) STRICT;
    CREATE TABLE ${tables.chunks} (
      id INTEGER PRIMARY KEY,
      chunk_id TEXT NOT NULL UNIQUE,
      document INTEGER NOT NULL,
      ordinal INTEGER NOT NULL,
      language TEXT,
      page_start INTEGER,
      page_end INTEGER,
      char_start INTEGER NOT NULL,
      char_end INTEGER NOT NULL,
      words INTEGER NOT NULL,
      grams INTEGER NOT NULL,
      counts BLOB NOT NULL,
      heading_path TEXT NOT NULL,
      text TEXT NOT NULL,
      context TEXT
    ) STRICT;
    CREATE INDEX ${tables.chunks}_by_document ON ${tables.chunks} (document, ordinal, page_start, page_end);
    CREATE TABLE ${tables.terms} (id INTEGER PRIMARY KEY, term TEXT NOT NULL UNIQUE, chunks INTEGER NOT NULL) STRICT`)
  createTokenStates(db, tables)
  createSearchTables(db, tables)
}

function createSearchTables(db: DatabaseSync, tables: Tables): void {
  db.exec(`CREATE TABLE IF NOT EXISTS ${tables.vectors} (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT`)
  createSegmentTables(db, tables)
}

/** Token states by the id of their chunk, apart from the chunks, which would otherwise take four times the pages. */
function createTokenStates(db: DatabaseSync, { tokenStates }: Tables): void {
  db.exec(`CREATE TABLE IF NOT EXISTS ${tokenStates} (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT`)
}

export function dropCollectionRow(db: DatabaseSync, { key }: { readonly key: number }): void {
  for (const table of [...Object.values(nameTables({ key })), ...earlierTables(key)]) db.exec(`DROP TABLE IF EXISTS ${table}`)
  db.prepare('DELETE FROM collections WHERE key = ?').run(key)
}

/** Tables of versions 0 and 1 that no collection has any more once its search tables are filled. */
export function earlierTables(key: number): readonly [vectors: string, postings: string] {
  return [`vectors_${key}`, `postings_${key}`]
}
