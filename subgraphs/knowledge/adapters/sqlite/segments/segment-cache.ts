import type { DatabaseSync } from 'node:sqlite'
import { RANGE } from './posting-lists.ts'
import { RecentlyUsed } from './recently-used.ts'
import { isBuried, listSegments, own, readGraves, type SegmentRow, type SegmentTables } from './segment-tables.ts'
import type { VectorCodes } from './vector-codes.ts'

/**
 * Bytes of segments that a thread keeps: 116 for a passage of 384 components, so 1.7 million passages. What was used
 * longest ago leaves first, and is read again when it is needed.
 */
const MAX_BYTES = 192 * 1024 * 1024

/** A segment in memory. */
export interface Segment extends SegmentRow {
  readonly chunks: Uint32Array
  /** Lengths of the passages, up to a multiple of `RANGE`. Infinity: buried, or beyond the last. */
  readonly words: Float32Array
  readonly grams: Float32Array
  /** The scales of the buried are NaN, and so are their estimates. */
  readonly codes: VectorCodes
}

type Stored = Readonly<Record<'chunks' | 'words' | 'grams' | 'centre' | 'scales' | 'bits' | 'fineScales' | 'fineBits', Uint8Array>>

/** Keeps segments in memory between searches. They are written once, so only new ones and new graves are read. */
export class SegmentCache {
  readonly #kept = new RecentlyUsed<Segment>(MAX_BYTES)

  /** All segments of a collection, as the transaction sees them: the largest first. */
  open(db: DatabaseSync, tables: SegmentTables): readonly Segment[] {
    return listSegments(db, tables)
      .toSorted((a, b) => b.passages - a.passages)
      .map((row) => this.#find(db, tables, row))
  }

  #find(db: DatabaseSync, tables: SegmentTables, row: SegmentRow): Segment {
    const key = `${tables.segments} ${row.segment} ${row.buried}`
    const found = this.#kept.get(key)
    if (found) return found
    const segment = readSegment(db, tables, row)
    const { chunks, words, grams, codes } = segment
    const arrays = [chunks, words, grams, codes.scales, codes.bits, codes.fineScales, codes.fineBits]
    const bytes = arrays.reduce((sum, { byteLength }) => sum + byteLength, 0)
    this.#kept.add(key, segment, bytes)
    return segment
  }
}

function readSegment(db: DatabaseSync, tables: SegmentTables, row: SegmentRow): Segment {
  const stored = db
    .prepare(
      `SELECT chunks, words, grams, centre, scales, bits, fine_scales AS fineScales, fine_bits AS fineBits FROM ${tables.segmentData} WHERE segment = ?`,
    )
    .get(row.segment) as Stored
  const graves = row.buried > 0 ? readGraves(db, tables, row.segment) : null
  const withoutBuried = (bytes: Uint8Array, length: number, none: number) => {
    const values = new Float32Array(length).fill(none)
    values.set(new Float32Array(own(bytes)))
    if (graves) for (let place = 0; place < row.passages; place++) if (isBuried(graves, place)) values[place] = none
    return values
  }
  const padded = Math.ceil(row.passages / RANGE) * RANGE
  return {
    ...row,
    chunks: new Uint32Array(own(stored.chunks)),
    words: withoutBuried(stored.words, padded, Number.POSITIVE_INFINITY),
    grams: withoutBuried(stored.grams, padded, Number.POSITIVE_INFINITY),
    codes: {
      centre: new Float32Array(own(stored.centre)),
      scales: withoutBuried(stored.scales, row.passages, Number.NaN),
      bits: Uint8Array.from(stored.bits),
      fineScales: new Float32Array(own(stored.fineScales)),
      fineBits: Uint8Array.from(stored.fineBits),
    },
  }
}
