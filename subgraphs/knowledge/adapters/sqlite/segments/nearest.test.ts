import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTables, nameTables } from '../chunk-index-schema.ts'
import { Kernels } from './kernels.ts'
import { nearestTo } from './nearest.ts'
import { SegmentCache } from './segment-cache.ts'
import { addSegment } from './segment-writer.ts'
import { cosinesOf, writeVectors } from './vectors.ts'

const DIMENSIONS = 128
/** Passages of each segment. */
const SIZES = [2_700, 2_400, 2_100]
const ALL = SIZES.reduce((sum, size) => sum + size, 0)
const COUNT = 10
/** One of three passages is near to the query. */
const isFar = (id: number) => id % 3 !== 0
const db = new DatabaseSync(':memory:')
const tables = nameTables({ key: 1 })
const kernels = new Kernels()
const query = Float32Array.from({ length: DIMENSIONS }, (_, i) => Math.sin(i * i))

/** Numbers of about a normal distribution. */
function drawFrom(seed: number): () => number {
  let state = Math.imul(seed + 1, 0x9e3779b1) | 1
  const draw = () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32 - 0.5
  }
  for (let i = 0; i < 10; i++) draw()
  return () => draw() + draw() + draw() + draw()
}

function vectorFor(id: number): Float32Array {
  const draw = drawFrom(id)
  return query.map((x) => (isFar(id) ? 0 : 2 * x) + draw())
}

beforeAll(() => {
  createTables(db, tables)
  let first = 1
  for (const size of SIZES) {
    const ids = Array.from({ length: size }, (_, i) => first + i)
    writeVectors(db, tables, new Map(ids.map((id) => [id, vectorFor(id)])))
    const passages = ids.map((id) => ({ id, words: 1, grams: 0, counts: new Map([[1, 1]]) }))
    addSegment(db, tables, DIMENSIONS, passages, vectorFor)
    first += size
  }
})
afterAll(() => db.close())

function nearest(count: number, eligible: ReadonlySet<number> | null): readonly (readonly [id: number, cosine: number])[] {
  const segments = new SegmentCache().open(db, tables)
  expect(segments.map(({ passages }) => passages)).toEqual(SIZES)
  return [...nearestTo(db, tables, kernels, segments, query, count, { ids: eligible, has: (id) => eligible?.has(id) ?? true })]
}

/** Compares the query with each of these. */
function scan(ids: readonly number[]): readonly (readonly [id: number, cosine: number])[] {
  return [...cosinesOf(db, tables, kernels, query, ids)].sort(([a, x], [b, y]) => y - x || a - b).slice(0, COUNT)
}

const ids = Array.from({ length: ALL }, (_, i) => i + 1)
/** So many are looked at by both bits. */
const REFINED = 1_000

it.each([
  ['all segments', isFar],
  ['the last segment', (id: number) => isFar(id) && id > ALL - SIZES[2]!],
  ['parts of the first and the last segment', (id: number) => isFar(id) && (id < 900 || id > ALL - 900)],
])('finds with a filter what an exact scan finds: passages of %s', (_name, accepts) => {
  const eligible = ids.filter(accepts)
  expect(eligible.length).toBeGreaterThan(REFINED)
  expect(nearest(COUNT, new Set(eligible))).toEqual(scan(eligible))
})

it('finds with a filter what an exact scan finds: so few passages that each is compared', () => {
  const eligible = ids.filter((id) => isFar(id) && id % 10 === 0)
  expect(eligible.length).toBeLessThan(REFINED)
  expect(nearest(COUNT, new Set(eligible))).toEqual(scan(eligible))
})

it('finds without the filter none of the passages that the filter accepts', () => {
  expect(nearest(REFINED, null).some(([id]) => isFar(id))).toBe(false)
})
