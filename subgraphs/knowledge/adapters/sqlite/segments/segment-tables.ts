import type { DatabaseSync } from 'node:sqlite'

/**
 * A collection's passages are searched in segments, which are written once: what is found by a first look at all of
 * them is small there and lies together. A passage that is deleted or replaced is buried in its segment. Segments of
 * like size are merged, so that a search visits few, and then the buried are left out.
 */
export interface SegmentTables {
  readonly segments: string
  readonly segmentData: string
  readonly lists: string
}

export function createSegmentTables(db: DatabaseSync, { segments, segmentData, lists }: SegmentTables): void {
  db.exec(`
    CREATE TABLE IF NOT EXISTS ${segments} (
      segment INTEGER PRIMARY KEY AUTOINCREMENT,
      passages INTEGER NOT NULL,
      words_average REAL NOT NULL,
      grams_average REAL NOT NULL,
      buried INTEGER NOT NULL DEFAULT 0,
      graves BLOB
    ) STRICT;
    CREATE TABLE IF NOT EXISTS ${segmentData} (
      segment INTEGER PRIMARY KEY,
      chunks BLOB NOT NULL,
      words BLOB NOT NULL,
      grams BLOB NOT NULL,
      centre BLOB NOT NULL,
      scales BLOB NOT NULL,
      bits BLOB NOT NULL,
      fine_scales BLOB,
      fine_bits BLOB
    ) STRICT;
    CREATE TABLE IF NOT EXISTS ${lists} (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT`)
}

/** BM25's saturation and length normalisation, as the port states them. */
export const K1 = 1.2
export const B = 0.75

export interface SegmentRow {
  readonly segment: number
  readonly passages: number
  /** Averages of the lengths when it was written, from which the bounds of its lists are. */
  readonly wordsAverage: number
  readonly gramsAverage: number
  /** It only grows, so the segment and this number tell the state of both rows. */
  readonly buried: number
}

export function listSegments(db: DatabaseSync, { segments }: SegmentTables): readonly SegmentRow[] {
  return db
    .prepare(
      `SELECT segment, passages, words_average AS wordsAverage, grams_average AS gramsAverage, buried FROM ${segments} ORDER BY segment`,
    )
    .all() as unknown as SegmentRow[]
}

/** Bits of the buried, by place; null: none is. */
export function readGraves(db: DatabaseSync, { segments }: SegmentTables, segment: number): Uint8Array | null {
  const row = db.prepare(`SELECT graves FROM ${segments} WHERE segment = ?`).get(segment) as { graves: Uint8Array | null }
  return row.graves
}

export function isBuried(graves: Uint8Array | null, place: number): boolean {
  return graves !== null && (graves[place >> 3]! & (1 << (place & 7))) !== 0
}

/** The lowest 31 bits of a pack's key are its first term, the 32 above them its segment. */
export const TERM_BITS = 2 ** 31 - 1

/**
 * The key of a pack of lists with this first term. A number would hold only 2^22 segments, and each replacement of a
 * document makes up to two.
 */
export function packKey(segment: number, term: number): bigint {
  return BigInt(segment) * BigInt(TERM_BITS + 1) + BigInt(term)
}

/** The ids of the chunks of a segment, by place. */
export function readChunks(db: DatabaseSync, { segmentData }: SegmentTables, segment: number): Uint32Array {
  const { chunks } = db.prepare(`SELECT chunks FROM ${segmentData} WHERE segment = ?`).get(segment) as { chunks: Uint8Array }
  return new Uint32Array(own(chunks))
}

/** The bytes as a buffer of their own, which other views may be made of. */
export function own(bytes: Uint8Array): ArrayBuffer {
  return Uint8Array.from(bytes).buffer
}
