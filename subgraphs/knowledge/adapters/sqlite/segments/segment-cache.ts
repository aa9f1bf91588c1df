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
  readonly #kept: RecentlyUsed<Segment>

  constructor(maxBytes = MAX_BYTES) {
    this.#kept = new RecentlyUsed(maxBytes)
  }

  /** All segments of a collection, as the transaction sees them: the largest first. */
  open(db: DatabaseSync, tables: SegmentTables): readonly Segment[] {
    const rows = listSegments(db, tables).toSorted((a, b) => b.passages - a.passages)
    const keys = rows.map(({ segment, buried }) => `${tables.segments} ${segment} ${buried}`)
    // Those that are kept are used before others are read. So of a collection that is larger than the bound, only what
    // is beyond it is read each time.
    const kept = keys.map((key) => this.#kept.get(key))
    if (kept.includes(undefined)) {
      const live = new Set(keys)
      this.#kept.dropAll((key) => key.startsWith(`${tables.segments} `) && !live.has(key))
    }
    return rows.map((row, i) => kept[i] ?? this.#read(db, tables, row, keys[i]!))
  }

  #read(db: DatabaseSync, tables: SegmentTables, row: SegmentRow, key: string): Segment {
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
