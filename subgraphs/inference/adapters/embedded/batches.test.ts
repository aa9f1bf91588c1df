import fc from 'fast-check'
import { expect, it } from 'vitest'
import { toBatches } from './batches.ts'

it('puts every text into one batch, within the limits of size and padding, for any lengths', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 2, max: 512 }), { maxLength: 100 }), (lengths) => {
      const batches = toBatches(lengths)
      expect(batches.flat().sort((a, b) => a - b)).toEqual(lengths.map((_, index) => index))
      for (const batch of batches) {
        if (batch.length === 1) continue
        const own = batch.map((index) => lengths[index]!)
        const size = Math.max(...own) * own.length
        expect(size).toBeLessThanOrEqual(256)
        expect(size - own.reduce((sum, length) => sum + length, 0)).toBeLessThanOrEqual(size / 16)
      }
    }),
  )
})

it('fills batches with short texts, and puts long ones alone', () => {
  expect(toBatches([20, 200, 20, 21, 202, 20])).toEqual([[0, 2, 5, 3], [1], [4]])
  expect(toBatches(Array.from({ length: 64 }, () => 16))).toHaveLength(4)
  expect(toBatches([])).toEqual([])
})
