import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type CollectionRow, createTables, nameTables } from '../chunk-index-schema.ts'
import { Kernels } from './kernels.ts'
import { lexicalLeg } from './lexical-leg.ts'
import { ListCache } from './list-cache.ts'
import { nearestTo } from './nearest.ts'
import { SegmentCache } from './segment-cache.ts'
import { listSegments } from './segment-tables.ts'
import { addSegment, bury, type SegmentPassage, tidySegments } from './segment-writer.ts'
import { encodeVectors } from './vector-codes.ts'
import { vectorReader, writeVectors } from './vectors.ts'

const DIMENSIONS = 12
const tables = nameTables({ key: 1 })
const kernels = new Kernels()

/** A collection whose passages are kept beside it, to compare with. */
class Collection {
  readonly db = new DatabaseSync(':memory:')
  readonly live = new Map<number, SegmentPassage>()
  readonly vectors = new Map<number, Float32Array>()
  readonly #cache = new SegmentCache()
  readonly #lists = new ListCache()
  readonly #dimensions: number
  readonly #isTidied: boolean

  /** Not tidied: its segments stay as they are put, whatever is buried in them. */
  constructor({ dimensions = DIMENSIONS, isTidied = true } = {}) {
    this.#dimensions = dimensions
    this.#isTidied = isTidied
    createTables(this.db, tables)
  }

  /** Replaces those that exist. */
  put(passages: readonly SegmentPassage[], vectorOf: (id: number) => Float32Array): void {
    this.#bury(passages.map(({ id }) => id))
    for (const passage of passages) {
      this.live.set(passage.id, passage)
      this.vectors.set(passage.id, vectorOf(passage.id))
    }
    const vectors = new Map(passages.map(({ id }) => [id, vectorOf(id)]))
    writeVectors(this.db, tables, vectors)
    addSegment(this.db, tables, this.#dimensions, passages, vectorOf)
    this.#tidy()
  }

  delete(ids: readonly number[]): void {
    this.#bury(ids)
    for (const id of ids) {
      this.live.delete(id)
      this.vectors.delete(id)
      this.db.prepare(`DELETE FROM ${tables.vectors} WHERE id = ?`).run(id)
    }
    this.#tidy()
  }

  /** As the index keeps it. */
  get row(): CollectionRow {
    const sum = (of: (passage: SegmentPassage) => number) => [...this.live.values()].reduce((total, passage) => total + of(passage), 0)
    const terms = new Map<number, number>()
    for (const { counts } of this.live.values()) for (const term of counts.keys()) terms.set(term, (terms.get(term) ?? 0) + 1)
    this.db.exec(`DELETE FROM ${tables.terms}`)
    for (const [term, chunks] of terms) {
      this.db.prepare(`INSERT INTO ${tables.terms} (id, term, chunks) VALUES (?, ?, ?)`).run(term, `w${term}`, chunks)
    }
    const lengths = { words: sum(({ words }) => words), grams: sum(({ grams }) => grams) }
    return { key: 1, organizationId: 'org', dimensions: this.#dimensions, chunks: this.live.size, ...lengths }
  }

  segments() {
    return this.#cache.open(this.db, tables)
  }

  lists() {
    return this.#lists.open(this.db, tables, listSegments(this.db, tables))
  }

  #bury(ids: readonly number[]): void {
    const existing = ids.filter((id) => this.live.has(id))
    bury(this.db, tables, this.#dimensions, existing)
  }

  #tidy(): void {
    if (this.#isTidied) tidySegments(this.db, tables, this.#dimensions, vectorReader(this.db, tables, this.#dimensions))
  }
}

/** Compares the best of a leg with all passages scored one by one. */
function expectExact(collection: Collection, query: readonly number[], count: number, isEligible: (id: number) => boolean): void {
  const leg = lexicalLeg(collection.db, tables, kernels, collection.row, 'w', query.map(String))
  const toScore = (id: number) => {
    const { counts, words } = collection.live.get(id)!
    const ofTerms = leg.termIds.map((term) => counts.get(term) ?? 0)
    return leg.coverage(Uint32Array.from(ofTerms), words)
  }
  const ranked = (ids: readonly number[]) => ids.toSorted((a, b) => toScore(b) - toScore(a) || a - b).slice(0, count)
  const found = leg.best(collection.segments(), collection.lists(), count, isEligible)
  expect(found.every((id) => collection.live.has(id) && isEligible(id))).toBe(true)
  expect(ranked(found)).toEqual(ranked([...collection.live.keys()].filter((id) => isEligible(id) && toScore(id) > 0)))
}

function makePassage(id: number, terms: readonly number[]): SegmentPassage {
  const counts = new Map<number, number>()
  for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1)
  return { id, words: terms.length, grams: 0, counts }
}

function seeded(seed: number): () => number {
  let state = seed + 1
  return () => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9
    state ^= state >>> 13
    return (state >>> 0) / 2 ** 32
  }
}

function vectorFor(id: number, dimensions = DIMENSIONS): Float32Array {
  const random = seeded(id)
  return Float32Array.from({ length: dimensions }, () => random() + random() - 1)
}

it('finds what scoring each passage finds, after any writes, replacements and deletions', () => {
  const id = fc.integer({ min: 1, max: 60 })
  const passage = fc.tuple(id, fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 15 }))
  const write = fc.uniqueArray(passage, { minLength: 1, maxLength: 12, selector: ([of]) => of })
  const step = fc.oneof({ weight: 3, arbitrary: write }, fc.array(id, { minLength: 1, maxLength: 10 }))
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 25 }), fc.integer({ min: 1, max: 8 }), fc.boolean(), (steps, count, isTidied) => {
      const collection = new Collection({ isTidied })
      for (const items of steps) {
        if (typeof items[0] === 'number') collection.delete(items as number[])
        else
          collection.put(
            (items as [number, number[]][]).map(([of, terms]) => makePassage(of, terms)),
            (of) => vectorFor(of),
          )
      }
      if (collection.live.size === 0) return
      expectExact(collection, [1, 2, 3, 11, 99], count, () => true)
      expectExact(collection, [4, 5, 6, 7, 8, 9, 10], count, (of) => of % 3 === 0)
      const query = vectorFor(500)
      const all = nearestTo(collection.db, tables, kernels, collection.segments(), query, count, { ids: null, has: () => true })
      expect(all.size).toBe(Math.min(count, collection.live.size))
      for (const [of, cosine] of all) expect(cosine).toBeCloseTo(cosineOf(query, collection.vectors.get(of)!), 1)
      collection.db.close()
    }),
    { numRuns: 60 },
  )
})

it('skips ranges of long lists without missing one of the best', () => {
  const collection = new Collection()
  const random = seeded(7)
  // Common and rare terms, as in a language: the term of rank r in one passage of r. Some passages have one very often.
  const drawTerms = () => [
    ...Array.from({ length: 12 }, () => Math.floor(1 / (random() + 0.004))),
    ...(random() < 0.01 ? new Array<number>(14 + Math.floor(10 * random())).fill(2) : []),
  ]
  let first = 1
  for (const count of [20_000, 5_000, 300]) {
    const made = Array.from({ length: count }, (_, i) => makePassage(first + i, drawTerms()))
    collection.put(made, (of) => vectorFor(of))
    first += count
  }
  const lists = [1, 2, 3, 4, 5, 6].map((term) => collection.lists()(1, term)!)
  expect(lists.map(({ dense }) => dense !== null)).toEqual([true, true, true, true, true, false])
  expect(lists.every(({ ranges, dense }) => (ranges === null) !== (dense === null))).toBe(true)
  collection.delete(Array.from({ length: 900 }, (_, i) => 1 + i * 7))
  for (const query of [[1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 90, 120], [1], [3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43]]) {
    expectExact(collection, query, 10, () => true)
    expectExact(collection, query, 50, () => true)
    expectExact(collection, query, 5, (of) => of % 11 === 0)
  }
  collection.db.close()
})

it('merges segments as they become many, and leaves out what is buried', () => {
  const collection = new Collection()
  for (let of = 1; of <= 200; of++) collection.put([makePassage(of, [of % 5, 7])], (at) => vectorFor(at))
  expect(listSegments(collection.db, tables).length).toBeLessThan(24)
  collection.delete(Array.from({ length: 150 }, (_, i) => i + 1))
  const segments = listSegments(collection.db, tables)
  expect(segments.reduce((sum, { passages, buried }) => sum + passages - buried, 0)).toBe(50)
  for (const { passages, buried } of segments) expect(buried * 2).toBeLessThanOrEqual(passages)
  collection.delete([...collection.live.keys()])
  for (const table of [tables.segments, tables.segmentData, tables.lists, tables.vectors]) {
    expect(collection.db.prepare(`SELECT count(*) AS n FROM ${table}`).get()).toEqual({ n: 0 })
  }
  collection.db.close()
})

it('finds, merges and drops lists of segments whose keys are beyond the whole numbers of JavaScript', () => {
  const collection = new Collection()
  collection.put([makePassage(1, [1, 2])], vectorFor)
  collection.db.prepare(`UPDATE sqlite_sequence SET seq = ? WHERE name = '${tables.segments}'`).run(2 ** 31)
  for (let id = 2; id <= 20; id++) collection.put([makePassage(id, [1, id])], vectorFor)
  collection.delete([3])
  for (const query of [[1], [2], [3], [19, 20]]) expectExact(collection, query, 5, () => true)
  const least = collection.db.prepare(`SELECT min(id) >> 31 AS segment FROM ${tables.lists}`).get()
  expect(least).toEqual({ segment: Math.min(...collection.segments().map(({ segment }) => segment)) })
})

it('erases what segments have of the vector of a chunk, in each place that it has had', () => {
  const collection = new Collection({ isTidied: false })
  const putIds = (ids: readonly number[], seed: number) =>
    collection.put(
      ids.map((of) => makePassage(of, [1])),
      (of) => vectorFor(of + seed),
    )
  const replaced = 9
  putIds(range(1, 41), 0)
  const before = [codesOf(collection, 1)]
  // It gets a place in another segment, with another vector.
  putIds([...range(41, 70), replaced], 1_000)
  before.push(codesOf(collection, 2))
  const [first, second] = before as [ReadonlyMap<number, Code>, ReadonlyMap<number, Code>]
  for (const code of [first.get(replaced)!, second.get(replaced)!]) expect(Object.values(code).every(isThere)).toBe(true)
  expect(second.get(replaced)).not.toEqual(first.get(replaced))
  expectErased(codesOf(collection, 1), first, replaced)
  expect(codesOf(collection, 2)).toEqual(second)

  collection.delete([replaced])
  expectErased(codesOf(collection, 1), first, replaced)
  expectErased(codesOf(collection, 2), second, replaced)
  collection.db.close()
})

it.each([2, 3, 64, 256])('keeps nothing of the vector of a deleted passage in the mean of a segment of %i', (count) => {
  const collection = new Collection()
  collection.put(
    range(1, count + 1).map((of) => makePassage(of, [1, of])),
    (of) => vectorFor(of),
  )
  collection.delete([1])
  expect(listSegments(collection.db, tables)).toMatchObject([{ passages: count - 1, buried: 0 }])
  const { centre } = collection.db.prepare(`SELECT centre FROM ${tables.segmentData}`).get() as { centre: Uint8Array }
  const vectorOf = vectorReader(collection.db, tables, DIMENSIONS)
  const { centre: ofOthers } = encodeVectors(count - 1, DIMENSIONS, (place) => vectorOf(place + 2)!)
  expect([...new Float32Array(Uint8Array.from(centre).buffer)]).toEqual([...ofOthers])
  expectExact(collection, [1, 2, count], 10, () => true)
  collection.db.close()
})

/** What a segment has of one vector, by column. */
type Code = Readonly<Record<'scales' | 'bits' | 'fine_scales' | 'fine_bits', readonly number[]>>

/** The codes of a segment by their chunks, as `VectorCodes` says where they are. */
function codesOf(collection: Collection, segment: number): ReadonlyMap<number, Code> {
  const row = collection.db.prepare(`SELECT * FROM ${tables.segmentData} WHERE segment = ?`).get(segment) as Record<
    keyof Code | 'chunks',
    Uint8Array
  >
  const chunks = new Uint32Array(Uint8Array.from(row.chunks).buffer)
  const groups = DIMENSIONS / 4
  const codeAt = (place: number): Code => {
    const each = (column: keyof Code) => {
      const bytes = row[column].length / chunks.length
      return [...row[column].subarray(place * bytes, (place + 1) * bytes)]
    }
    const firstByte = Math.floor(place / 32) * groups * 16 + (place % 16)
    const bits = Array.from({ length: groups }, (_, group) => (row.bits[firstByte + group * 16]! >> (place % 32 < 16 ? 0 : 4)) & 15)
    return { scales: each('scales'), bits, fine_scales: each('fine_scales'), fine_bits: each('fine_bits') }
  }
  return new Map(Array.from(chunks, (id, place) => [id, codeAt(place)]))
}

function isThere(bytes: readonly number[]): boolean {
  return bytes.some((byte) => byte !== 0)
}

/** Nothing is left of this one, and all of the others. */
function expectErased(codes: ReadonlyMap<number, Code>, before: ReadonlyMap<number, Code>, erased: number): void {
  for (const [id, code] of codes) {
    if (id === erased) expect(Object.values(code).some(isThere)).toBe(false)
    else expect(code).toEqual(before.get(id))
  }
}

function range(first: number, end: number): readonly number[] {
  return Array.from({ length: end - first }, (_, i) => first + i)
}

it('finds .98 of the ten nearest vectors by their codes', () => {
  const dimensions = 256
  const collection = new Collection({ dimensions })
  const random = seeded(3)
  const normal = () => random() + random() + random() + random() - 2
  // Texts lie around some subjects, and all of them on one side.
  const subjects = Array.from({ length: 40 }, () => Float32Array.from({ length: dimensions }, () => normal()))
  const draw = () => {
    const subject = subjects[Math.floor(random() * subjects.length)]!
    return Float32Array.from({ length: dimensions }, (_, i) => 1 + subject[i]! + 0.7 * normal())
  }
  const vectors = Array.from({ length: 4_000 }, draw)
  for (let first = 0; first < vectors.length; first += 2_000) {
    collection.put(
      vectors.slice(first, first + 2_000).map((_, i) => makePassage(first + i, [1])),
      (of) => vectors[of]!,
    )
  }
  let found = 0
  for (let question = 0; question < 20; question++) {
    const query = draw()
    const nearest = nearestTo(collection.db, tables, kernels, collection.segments(), query, 10, { ids: null, has: () => true })
    const cosines = vectors.map((vector) => cosineOf(query, vector))
    const exact = [...cosines.keys()].sort((a, b) => cosines[b]! - cosines[a]!).slice(0, 10)
    found += exact.filter((of) => nearest.has(of)).length
  }
  expect(found / 200).toBeGreaterThanOrEqual(0.98)
  collection.db.close()
})

function cosineOf(a: Float32Array, b: Float32Array): number {
  const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, i) => sum + value * y[i]!, 0)
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
}
