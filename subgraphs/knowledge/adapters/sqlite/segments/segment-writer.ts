import type { DatabaseSync } from 'node:sqlite'
import { encodeList, ListPacker, openList, readList, unpackLists } from './posting-lists.ts'
import { B, isBuried, K1, listSegments, own, packKey, readChunks, readGraves, type SegmentTables, TERM_BITS } from './segment-tables.ts'
import { encodeVectors, eraseCode, MAX_EXACT, type VectorCodes } from './vector-codes.ts'

/** Segments of like size that become one: each passage is rewritten once for each power of it. */
const MERGED = 8
/** Passages of the largest segments. A merge that makes one takes about a second, in which no other write runs. */
const MAX_PASSAGES = 32_768

/** A passage as a segment takes it. */
export interface SegmentPassage {
  /** The chunk's row. */
  readonly id: number
  /** Its terms with repeats, of each leg. */
  readonly words: number
  readonly grams: number
  /** How often it has each term. */
  readonly counts: ReadonlyMap<number, number>
}

/** Reads the vector of a chunk; null: it has none. */
type VectorOf = (id: number) => Float32Array | null

interface Members {
  readonly chunks: Uint32Array
  readonly words: Float32Array
  readonly grams: Float32Array
}

/** Makes a segment of these passages. The caller has buried earlier versions of them. */
export function addSegment(
  db: DatabaseSync,
  tables: SegmentTables,
  dimensions: number,
  passages: readonly SegmentPassage[],
  vectorOf: VectorOf,
): void {
  if (passages.length === 0) return
  const members = {
    chunks: Uint32Array.from(passages, ({ id }) => id),
    words: Float32Array.from(passages, ({ words }) => words),
    grams: Float32Array.from(passages, ({ grams }) => grams),
  }
  const postings = new Map<number, number[]>()
  for (const [place, { counts }] of passages.entries()) {
    for (const [term, count] of counts) {
      const list = postings.get(term)
      if (list) list.push(place, count)
      else postings.set(term, [place, count])
    }
  }
  const places = new Uint32Array(passages.length)
  const counts = new Uint32Array(passages.length)
  writeSegment(db, tables, dimensions, members, vectorOf, (write) => {
    for (const term of Uint32Array.from(postings.keys()).sort()) {
      const list = postings.get(term)!
      for (let i = 0; i < list.length; i += 2) {
        places[i / 2] = list[i]!
        counts[i / 2] = list[i + 1]!
      }
      write(term, places, counts, list.length / 2)
    }
  })
}

type WriteList = (term: number, places: Uint32Array, counts: Uint32Array, passages: number) => void

function writeSegment(
  db: DatabaseSync,
  tables: SegmentTables,
  dimensions: number,
  { chunks, words, grams }: Members,
  vectorOf: VectorOf,
  giveLists: (write: WriteList) => void,
): void {
  const wordsAverage = mean(words)
  const gramsAverage = mean(grams)
  const { lastInsertRowid } = db
    .prepare(`INSERT INTO ${tables.segments} (passages, words_average, grams_average) VALUES (?, ?, ?)`)
    .run(chunks.length, wordsAverage, gramsAverage)
  const segment = Number(lastInsertRowid)
  const none = new Float32Array(dimensions)
  const codes = encodeVectors(chunks.length, dimensions, (place) => vectorOf(chunks[place]!) ?? none)
  db.prepare(
    `INSERT INTO ${tables.segmentData} (segment, chunks, words, grams, centre, scales, bits, fine_scales, fine_bits)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(segment, bytesOf(chunks), bytesOf(words), bytesOf(grams), ...codeColumns(codes))
  const insert = db.prepare(`INSERT INTO ${tables.lists} (id, data) VALUES (?, ?)`)
  const packer = new ListPacker((firstTerm, pack) => insert.run(packKey(segment, firstTerm), pack))
  const share = (length: number, average: number, count: number) => count / (count + K1 * (1 - B + (B * length) / average))
  // Of which leg a term is, its number does not say.
  const shareOf = (place: number, count: number) =>
    Math.max(share(words[place]!, wordsAverage, count), share(grams[place]!, gramsAverage, count))
  giveLists((term, places, counts, passages) => packer.add(term, encodeList(places, counts, passages, chunks.length, shareOf)))
  packer.flush()
}

/**
 * Writes one segment anew that version 2 wrote, without what is buried in it. Gives the passages that are left; null:
 * there is no such segment.
 */
export function renewSegment(db: DatabaseSync, tables: SegmentTables, dimensions: number, vectorOf: VectorOf): number | null {
  const segments = db
    .prepare(`SELECT segment, passages FROM ${tables.segments} JOIN ${tables.segmentData} USING (segment) WHERE fine_bits IS NULL`)
    .all() as { segment: number; passages: number }[]
  const [first] = segments
  if (!first) return null
  merge(db, tables, dimensions, [first.segment], vectorOf)
  return segments.reduce((sum, { passages }) => sum + passages, 0) - first.passages
}

function codeColumns({ centre, scales, bits, fineScales, fineBits }: VectorCodes): readonly Uint8Array[] {
  return [bytesOf(centre), bytesOf(scales), bits, bytesOf(fineScales), fineBits]
}

function bytesOf({ buffer }: Float32Array | Uint32Array): Uint8Array {
  return new Uint8Array(buffer)
}

function mean(lengths: Float32Array): number {
  return lengths.reduce((sum, length) => sum + length, 0) / lengths.length || 1
}

/** Hides these chunks from searches, each in the one segment that has it, and erases what is there of their vectors. */
export function bury(db: DatabaseSync, tables: SegmentTables, dimensions: number, ids: readonly number[]): void {
  if (ids.length === 0) return
  const left = new Set(ids)
  const write = db.prepare(`UPDATE ${tables.segments} SET buried = ?, graves = ? WHERE segment = ?`)
  const readCodes = db.prepare(
    `SELECT scales, bits, fine_scales AS fineScales, fine_bits AS fineBits FROM ${tables.segmentData} WHERE segment = ?`,
  )
  const writeCodes = db.prepare(`UPDATE ${tables.segmentData} SET scales = ?, bits = ?, fine_scales = ?, fine_bits = ? WHERE segment = ?`)
  // Newest first: what is replaced was mostly written last.
  for (const { segment, passages, buried } of listSegments(db, tables).toReversed()) {
    if (left.size === 0) return
    const graves = Uint8Array.from(readGraves(db, tables, segment) ?? new Uint8Array(Math.ceil(passages / 8)))
    const found: number[] = []
    for (const [place, id] of readChunks(db, tables, segment).entries()) {
      if (!left.has(id) || isBuried(graves, place)) continue
      graves[place >> 3]! |= 1 << (place & 7)
      left.delete(id)
      found.push(place)
    }
    if (found.length === 0) continue
    write.run(buried + found.length, graves, segment)
    const stored = readCodes.get(segment) as Record<'scales' | 'bits' | 'fineScales' | 'fineBits', Uint8Array>
    const scales = new Float32Array(own(stored.scales))
    const fineScales = new Float32Array(own(stored.fineScales))
    const [bits, fineBits] = [stored.bits, stored.fineBits].map((bytes) => Uint8Array.from(bytes)) as [Uint8Array, Uint8Array]
    for (const place of found) eraseCode({ scales, bits, fineScales, fineBits }, dimensions, place)
    writeCodes.run(bytesOf(scales), bits, bytesOf(fineScales), fineBits, segment)
  }
}

/**
 * Merges what is due, and writes small segments anew without what is buried. Call it in the transaction that buries.
 * Searches find the same before and after.
 */
export function tidySegments(db: DatabaseSync, tables: SegmentTables, dimensions: number, vectorOf: VectorOf): void {
  for (;;) {
    const due = dueSegments(
      listSegments(db, tables).map(({ segment, passages, buried }) => ({ segment, passages, live: passages - buried })),
    )
    if (due.length === 0) return
    merge(db, tables, dimensions, due, vectorOf)
  }
}

interface Sized {
  readonly segment: number
  readonly passages: number
  readonly live: number
}

function dueSegments(all: readonly Sized[]): readonly number[] {
  const mostlyBuried = all.find(({ passages, live }) => live * 2 < passages)
  if (mostlyBuried) return [mostlyBuried.segment]
  const open = all.filter(({ live }) => live * 2 <= MAX_PASSAGES)
  for (const tier of Map.groupBy(open, ({ live }) => Math.floor(Math.log(live) / Math.log(MERGED))).values()) {
    let sum = 0
    const fitting: number[] = []
    for (const { segment, live } of tier) {
      if (sum + live > MAX_PASSAGES || fitting.length === MERGED) break
      sum += live
      fitting.push(segment)
    }
    if (fitting.length === MERGED || (fitting.length > 1 && sum * 2 > MAX_PASSAGES)) return fitting
  }
  // The mean of so few vectors is exact, and still has a share of those that are buried. Writing the segment anew takes
  // at most 40 ms, less than half of a full `put`.
  const small = all.find(({ passages, live }) => live < passages && passages <= MAX_EXACT)
  return small ? [small.segment] : []
}

/** Replaces these segments by one that has what is not buried in them. */
function merge(db: DatabaseSync, tables: SegmentTables, dimensions: number, segments: readonly number[], vectorOf: VectorOf): void {
  const sources = segments.map((segment) => ({ segment, graves: readGraves(db, tables, segment), ...readMembers(db, tables, segment) }))
  const newPlaces = sources.map(({ chunks }) => new Int32Array(chunks.length).fill(-1))
  const kept: { readonly source: number; readonly place: number }[] = []
  for (const [source, { chunks, graves }] of sources.entries()) {
    for (let place = 0; place < chunks.length; place++) {
      if (isBuried(graves, place)) continue
      newPlaces[source]![place] = kept.length
      kept.push({ source, place })
    }
  }
  if (kept.length > 0) {
    const members = {
      chunks: Uint32Array.from(kept, ({ source, place }) => sources[source]!.chunks[place]!),
      words: Float32Array.from(kept, ({ source, place }) => sources[source]!.words[place]!),
      grams: Float32Array.from(kept, ({ source, place }) => sources[source]!.grams[place]!),
    }
    const places = new Uint32Array(kept.length)
    const counts = new Uint32Array(kept.length)
    writeSegment(db, tables, dimensions, members, vectorOf, (write) => {
      for (const { term, lists } of termsOf(segments.map((segment) => listsOf(db, tables, segment)))) {
        let passages = 0
        for (const { source, list } of lists) {
          const toNew = newPlaces[source]!
          readList(openList(list), (place, count) => {
            const newPlace = toNew[place]!
            if (newPlace < 0) return
            places[passages] = newPlace
            counts[passages++] = count
          })
        }
        if (passages > 0) write(term, places, counts, passages)
      }
    })
  }
  for (const segment of segments) {
    db.prepare(`DELETE FROM ${tables.segments} WHERE segment = ?`).run(segment)
    db.prepare(`DELETE FROM ${tables.segmentData} WHERE segment = ?`).run(segment)
    db.prepare(`DELETE FROM ${tables.lists} WHERE id >= ? AND id < ?`).run(packKey(segment, 0), packKey(segment + 1, 0))
  }
}

function readMembers(db: DatabaseSync, { segmentData }: SegmentTables, segment: number): Members {
  const row = db.prepare(`SELECT chunks, words, grams FROM ${segmentData} WHERE segment = ?`).get(segment) as Record<
    keyof Members,
    Uint8Array
  >
  return { chunks: new Uint32Array(own(row.chunks)), words: new Float32Array(own(row.words)), grams: new Float32Array(own(row.grams)) }
}

interface TermList {
  readonly term: number
  readonly list: Uint8Array
}

function* listsOf(db: DatabaseSync, { lists }: SegmentTables, segment: number): Generator<TermList> {
  const rows = db.prepare(`SELECT id & ${TERM_BITS} AS first, data FROM ${lists} WHERE id >= ? AND id < ? ORDER BY id`)
  for (const row of rows.iterate(packKey(segment, 0), packKey(segment + 1, 0))) {
    const { first, data } = row as { first: number; data: Uint8Array }
    yield* unpackLists(first, data)
  }
}

/** The lists of each term in ascending order, with their sources, from generators in ascending order. */
function* termsOf(
  sources: readonly Generator<TermList>[],
): Generator<{ readonly term: number; readonly lists: readonly { readonly source: number; readonly list: Uint8Array }[] }> {
  const heads = sources.map((source) => source.next())
  for (;;) {
    let term = Number.POSITIVE_INFINITY
    for (const head of heads) if (!head.done && head.value.term < term) term = head.value.term
    if (term === Number.POSITIVE_INFINITY) return
    const lists: { readonly source: number; readonly list: Uint8Array }[] = []
    for (const [source, head] of heads.entries()) {
      if (head.done || head.value.term !== term) continue
      lists.push({ source, list: head.value.list })
      heads[source] = sources[source]!.next()
    }
    yield { term, lists }
  }
}
