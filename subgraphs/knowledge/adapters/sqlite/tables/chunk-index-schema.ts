import { DatabaseSync } from 'node:sqlite'
import { BUSY_TIMEOUT_MS } from '../../../../common/adapters/sqlite/database.ts'

/** Bytes of the write-ahead log that remain on disk after a checkpoint. */
const WAL_LIMIT_BYTES = 67_108_864

/**
 * SQLite's `user_version`: the version that this program reads and writes. Files of earlier versions have other tables
 * for vectors and postings, which `chunk-index-earlier.ts` replaces.
 */
export const INDEX_VERSION = 4

/** A collection's row: the key of its tables, and totals of its chunks for scores. */
export interface CollectionRow {
  readonly key: number
  readonly organizationId: string
  readonly dimensions: number
  readonly chunks: number
  /** Terms of all chunks, duplicates included. */
  readonly words: number
  readonly grams: number
  /** Incremented when chunks are deleted, so that readers drop their vectors, too. */
  readonly removals: number
  /** 1: FTS5 has the words of its chunks. 0: the collection has always been small. */
  readonly hasPostings: 0 | 1
}

/**
 * Names of a collection's tables. Each collection has its own, so that no tenant's text affects another's scores, and
 * dropping one is fast. The key is an internal number, so no name contains a client's text.
 */
export interface Tables {
  readonly documents: string
  readonly chunks: string
  readonly vectors: string
  readonly tokenEmbeddings: string
  readonly terms: string
  readonly postings: string
}

/** Returns the names of the tables of a collection. */
export function nameTables({ key }: { readonly key: number }): Tables {
  const table = (what: string) => `${what}_${Number(key)}`
  return {
    documents: table('documents'),
    chunks: table('chunks'),
    vectors: table('quantized_vectors'),
    tokenEmbeddings: table('token_states'),
    terms: table('terms'),
    postings: table('word_postings'),
  }
}

/** `last_id` is the ID of a collection's newest chunk. IDs are never reused, even after a deletion. */
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
      grams INTEGER NOT NULL DEFAULT 0,
      last_id INTEGER NOT NULL DEFAULT 0,
      removals INTEGER NOT NULL DEFAULT 0,
      has_postings INTEGER NOT NULL DEFAULT 0
    ) STRICT`)
  // Files of earlier versions lack these columns.
  if (!db.prepare("SELECT 1 FROM pragma_table_info('collections') WHERE name = 'last_id'").get())
    for (const column of ['last_id', 'removals', 'has_postings'])
      db.exec(`ALTER TABLE collections ADD COLUMN ${column} INTEGER NOT NULL DEFAULT 0`)
  // A rebuild ends with its process.
  for (const { key } of db.prepare(`SELECT key FROM collections WHERE collection_id GLOB '${DRAFT}*'`).all() as { key: number }[])
    dropCollectionRow(db, { key })
  return db
}

/** The file is not memory-mapped: its pages would count as memory of this process, once per thread, and save no CPU. */
export function openReader(file: string): DatabaseSync {
  return new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS })
}

/**
 * While a collection is rebuilt, its new tables belong to a collection with this prefix, which also gets every write.
 * Collection IDs never start with it.
 */
const DRAFT = 'draft:'

/** Returns the name of the draft of a collection that is being rebuilt. */
export function draftName(collectionId: string): string {
  return DRAFT + collectionId
}

/** Returns the first collection after `after` that is not a draft. */
export function nextCollection(db: DatabaseSync, after: string): string | undefined {
  const row = db
    .prepare(`SELECT collection_id FROM collections WHERE collection_id > ? AND collection_id NOT GLOB '${DRAFT}*' ORDER BY 1 LIMIT 1`)
    .get(after)
  return row?.collection_id as string | undefined
}

export function findCollection(db: DatabaseSync, collectionId: string): CollectionRow | undefined {
  const row = db
    .prepare(
      `SELECT key, organization_id AS organizationId, dimensions, chunks, words, grams, removals, has_postings AS hasPostings
       FROM collections WHERE collection_id = ?`,
    )
    .get(collectionId)
  return row as CollectionRow | undefined
}

/**
 * A term has a number. Its text starts with `w` for words and `g` for 3-grams. A chunk's `counts` has its terms, for
 * its scores and its deletion.
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
  createSearchTables(db, tables)
}

/** Vectors and token embeddings are in separate tables, because chunks would otherwise take four times the pages. */
export function createSearchTables(db: DatabaseSync, tables: Tables): void {
  db.exec(`
    CREATE TABLE ${tables.vectors} (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS ${tables.tokenEmbeddings} (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT`)
}

/** Drops a collection's tables and deletes its row. */
export function dropCollectionRow(db: DatabaseSync, { key }: { readonly key: number }): void {
  for (const table of Object.values(nameTables({ key }))) db.exec(`DROP TABLE IF EXISTS ${table}`)
  db.prepare('DELETE FROM collections WHERE key = ?').run(key)
}
