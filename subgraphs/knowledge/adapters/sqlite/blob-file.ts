import type { FileKind } from '../../../common/adapters/sqlite/database.ts'

/** Identifies the file format to SQLite. */
export const BLOB_FILE: FileKind = {
  name: 'blob store',
  /** "KisB" in ASCII. */
  applicationId: 0x4b69_7342,
  schemaVersion: 1,
  /** Large pages shorten the overflow chains of the pieces. */
  pageSize: 32_768,
}

/**
 * A blob is a row of `blob` with its bytes in pieces, so that a range is read without the rest. A replaced blob gets a
 * new number, so that its pieces never mix with the old ones.
 */
export const BLOB_SCHEMA = `
  CREATE TABLE IF NOT EXISTS blob (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, size INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS piece (blob INTEGER NOT NULL, position INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (blob, position)) WITHOUT ROWID`

/** Bytes per piece, except the last one of a blob. A download of 1 MiB reads four or five pieces. */
export const PIECE_BYTES = 256 * 1024
