import { expect, it } from 'vitest'
import { IdleHeap } from './idle-collection.ts'

const MB = 1024 ** 2

function looks(heap: IdleHeap, count: number, utilization: number, bytes: number): readonly boolean[] {
  return Array.from({ length: count }, () => heap.isWorthCollecting(utilization, bytes))
}

it('collects at the third quiet look after a busy time', () => {
  const heap = new IdleHeap(50 * MB)
  expect(looks(heap, 5, 0.6, 110 * MB)).not.toContain(true)
  expect(looks(heap, 3, 0.02, 110 * MB)).toEqual([false, false, true])
})

it('counts quiet looks anew after one that was not quiet', () => {
  const heap = new IdleHeap(50 * MB)
  looks(heap, 2, 0.02, 110 * MB)
  looks(heap, 1, 0.3, 110 * MB)
  expect(looks(heap, 3, 0.02, 110 * MB)).toEqual([false, false, true])
})

it('leaves a heap that has hardly grown since the last collection', () => {
  const heap = new IdleHeap(50 * MB)
  expect(looks(heap, 50, 0.02, 73 * MB)).not.toContain(true)
  heap.noteCollected(70 * MB)
  expect(looks(heap, 50, 0.02, 93 * MB)).not.toContain(true)
  expect(looks(heap, 1, 0.02, 94 * MB)).toEqual([true])
})

it('does not collect again for 30 looks', () => {
  const heap = new IdleHeap(50 * MB)
  expect(looks(heap, 3, 0.02, 110 * MB)).toContain(true)
  heap.noteCollected(50 * MB)
  expect(looks(heap, 29, 0.02, 110 * MB)).not.toContain(true)
  expect(looks(heap, 1, 0.02, 110 * MB)).toEqual([true])
})
