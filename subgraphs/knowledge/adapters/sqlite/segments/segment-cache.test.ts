import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { createTables, nameTables, type Tables } from '../chunk-index-schema.ts'
import { ListCache } from './list-cache.ts'
import { SegmentCache } from './segment-cache.ts'
import { listSegments } from './segment-tables.ts'
import { addSegment, bury, tidySegments } from './segment-writer.ts'

const DIMENSIONS = 16
const TERM = 7
/** So many have long lists. */
const PASSAGES = 5_000
const vectorOf = (id: number) => Float32Array.from({ length: DIMENSIONS }, (_, i) => Math.sin(id * (i + 1)))

function makeFile(): readonly [db: DatabaseSync, one: Tables, other: Tables] {
  const db = new DatabaseSync(':memory:')
  const [one, other] = [nameTables({ key: 1 }), nameTables({ key: 11 })]
  for (const tables of [one, other]) createTables(db, tables)
  return [db, one, other]
}

/** With ids from `first` on. */
function add(db: DatabaseSync, tables: Tables, first: number, count = PASSAGES): void {
  const passages = Array.from({ length: count }, (_, i) => ({ id: first + i, words: 3, grams: 0, counts: new Map([[TERM, 1 + (i % 3)]]) }))
  addSegment(db, tables, DIMENSIONS, passages, vectorOf)
}

/** Bytes of such a segment in memory: a chunk, two lengths, two scales and two bits for each component. */
const segmentBytes = (passages: number) => passages * (5 * 4 + DIMENSIONS / 4)

it('reads again only the segments that are new or have new graves', () => {
  const [db, tables] = makeFile()
  add(db, tables, 1)
  add(db, tables, 10_001, 64)
  const cache = new SegmentCache()
  const before = cache.open(db, tables)
  bury(db, tables, DIMENSIONS, [10_001])
  add(db, tables, 20_001, 32)
  const after = cache.open(db, tables)
  expect(after.map((segment) => before.indexOf(segment))).toEqual([0, -1, -1])
  expect(after.map(({ buried }) => buried)).toEqual([0, 1, 0])
  expect(cache.open(db, tables).every((segment, i) => segment === after[i])).toBe(true)
  db.close()
})

it('drops what it has of segments that are gone before anything else', () => {
  const [db, tables, others] = makeFile()
  add(db, others, 1)
  // There is room for three segments.
  const cache = new SegmentCache(3.5 * segmentBytes(PASSAGES))
  const [other] = cache.open(db, others)
  add(db, tables, 1)
  for (let id = 1; id < 10; id++) {
    bury(db, tables, DIMENSIONS, [id])
    expect(cache.open(db, tables)[0]!.buried).toBe(id)
  }
  expect(cache.open(db, others)[0]).toBe(other)
  db.close()
})

it('reads of a collection that is larger than its bound only what is beyond it', () => {
  const [db, tables] = makeFile()
  for (let segment = 0; segment < 5; segment++) add(db, tables, 1 + segment * PASSAGES)
  const cache = new SegmentCache(4.5 * segmentBytes(PASSAGES))
  let before = cache.open(db, tables)
  for (let search = 0; search < 4; search++) {
    const after = cache.open(db, tables)
    expect(after.filter((segment) => !before.includes(segment)).length).toBe(1)
    before = after
  }
  db.close()
})

it('drops lists of segments that are gone before anything else', () => {
  const [db, tables, others] = makeFile()
  add(db, others, 1)
  const open = (lists: ListCache, of: Tables) => lists.open(db, of, listSegments(db, of))
  // A dense list has half a byte for each passage: there is room for four.
  const lists = new ListCache((4.5 * PASSAGES) / 2)
  const other = open(lists, others)(1, TERM)
  expect(other!.passages).toBe(PASSAGES)
  add(db, tables, 100_001)
  const staying = open(lists, tables)(1, TERM)
  const ids = Array.from({ length: PASSAGES }, (_, i) => 1 + i)
  for (let segment = 2; segment < 10; segment++) {
    add(db, tables, 1)
    expect(open(lists, tables)(1, TERM)).toBe(staying)
    const list = open(lists, tables)(segment, TERM)
    expect(open(lists, tables)(segment, TERM)).toBe(list)
    expect(open(lists, tables)(1, TERM)).toBe(staying)
    bury(db, tables, DIMENSIONS, ids)
    tidySegments(db, tables, DIMENSIONS, vectorOf)
    expect(listSegments(db, tables).map(({ segment }) => segment)).toEqual([1])
  }
  expect(open(lists, others)(1, TERM)).toBe(other)
  db.close()
})
