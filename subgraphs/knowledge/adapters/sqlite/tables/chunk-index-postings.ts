import type { DatabaseSync } from 'node:sqlite'
import { postingsOf } from './chunk-index-counts.ts'
import type { CollectionRow, Tables } from './chunk-index-schema.ts'

/**
 * Maximum chunks of a collection without FTS5. A search scores all of them in 3 ms. FTS5 takes five tables, and each
 * connection reads all table names when a collection is created, which takes seconds with thousands of collections.
 */
export const SMALL_COLLECTION = 512

/** A chunk's ID with its encoded term counts. */
export interface EncodedChunk {
  readonly id: number
  readonly counts: Uint8Array
}

/**
 * Creates a collection's FTS5 table: the words of each chunk, as the IDs of their terms. It erases deleted words at
 * once.
 */
export function createPostings(db: DatabaseSync, { postings }: Tables, key: CollectionRow['key']): void {
  db.exec(`CREATE VIRTUAL TABLE ${postings} USING fts5(words, content='', tokenize=ascii);
    INSERT INTO ${postings} (${postings}, rank) VALUES ('secure-delete', 1)`)
  db.prepare('UPDATE collections SET has_postings = 1 WHERE key = ?').run(key)
}

/** `words` must contain the IDs of all words of the chunks, and of no 3-gram. */
export function writePostings(db: DatabaseSync, { postings }: Tables, chunks: readonly EncodedChunk[], words: ReadonlySet<number>): void {
  const write = db.prepare(`INSERT INTO ${postings} (rowid, words) VALUES (?, ?)`)
  for (const { id, counts } of chunks) write.run(id, postingsOf(counts, words))
}

/** FTS5 needs the words to find a chunk's postings. */
export function removePostings(db: DatabaseSync, { postings }: Tables, chunks: readonly EncodedChunk[], words: ReadonlySet<number>): void {
  const remove = db.prepare(`INSERT INTO ${postings} (${postings}, rowid, words) VALUES ('delete', ?, ?)`)
  for (const { id, counts } of chunks) remove.run(id, postingsOf(counts, words))
}

/** Returns the IDs of all terms of the collection that are words. */
export function readWordIds(db: DatabaseSync, { terms }: Tables): ReadonlySet<number> {
  const rows = db.prepare(`SELECT id FROM ${terms} WHERE term >= 'w' AND term < 'x'`).all()
  return new Set(rows.map(({ id }) => Number(id)))
}
