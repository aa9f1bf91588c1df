import { expect, it } from 'vitest'
import { IdleHeap } from './idle-collection.ts'

const MB = 1024 ** 2

function looks(heap: IdleHeap, count: number, utilization: number, bytes: number): readonly boolean[] {
  return Array.from({ length: count }, () => heap.isWorthCollecting(utilization, bytes))
}

/** After a collection, which left 50 MB, the service was busy for five minutes. */
function collected(): IdleHeap {
  const heap = new IdleHeap()
  heap.noteCollected(50 * MB)
  looks(heap, 300, 0.6, 110 * MB)
  return heap
}

it('collects what a start leaves at the first quiet look', () => {
  expect(looks(new IdleHeap(), 1, 0.02, 80 * MB)).toEqual([true])
  const busy = new IdleHeap()
  expect(looks(busy, 100, 0.6, 80 * MB)).not.toContain(true)
  expect(looks(busy, 1, 0.02, 80 * MB)).toEqual([true])
})

it('collects what a busy time leaves after 30 quiet looks', () => {
  const heap = collected()
  expect(looks(heap, 29, 0.02, 110 * MB)).not.toContain(true)
  expect(looks(heap, 1, 0.02, 110 * MB)).toEqual([true])
})

it('counts quiet looks anew after one that was not quiet', () => {
  const heap = collected()
  looks(heap, 29, 0.02, 110 * MB)
  looks(heap, 1, 0.3, 110 * MB)
  expect(looks(heap, 29, 0.02, 110 * MB)).not.toContain(true)
  expect(looks(heap, 1, 0.02, 110 * MB)).toEqual([true])
})

it('leaves a heap that has grown by less than 24 MB since the last collection', () => {
  const heap = collected()
  expect(looks(heap, 500, 0.02, 73 * MB)).not.toContain(true)
  expect(looks(heap, 1, 0.02, 74 * MB)).toEqual([true])
})

it('leaves a heap of more than 512 MB, whose collection could stop the process too long', () => {
  expect(looks(new IdleHeap(), 50, 0.02, 513 * MB)).not.toContain(true)
  expect(looks(collected(), 50, 0.02, 513 * MB)).not.toContain(true)
  expect(looks(collected(), 30, 0.02, 512 * MB)).toContain(true)
})

it('collects no more than once in 300 looks', () => {
  const heap = collected()
  heap.noteCollected(50 * MB)
  expect(looks(heap, 299, 0.02, 110 * MB)).not.toContain(true)
  expect(looks(heap, 1, 0.02, 110 * MB)).toEqual([true])
})
