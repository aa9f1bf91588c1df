import fc from 'fast-check'
import { expect, it } from 'vitest'
import { CountReader, decodeCounts, encodeCounts } from './chunk-index-counts.ts'
import { Kernels } from './segments/kernels.ts'

const counts = fc.map(fc.integer({ min: 1, max: 2 ** 31 - 1 }), fc.integer({ min: 1, max: 100_000 }), { maxKeys: 50 })

it('gives back every count, ascending by id', () => {
  fc.assert(
    fc.property(counts, (drawn) => {
      const expected = [...drawn].sort(([a], [b]) => a - b).flat()
      expect([...decodeCounts(encodeCounts(drawn))]).toEqual(expected)
    }),
  )
})

it('gives the counts of the terms asked for, in their order, chunk after chunk', () => {
  const kernels = new Kernels()
  fc.assert(
    fc.property(counts, counts, fc.uniqueArray(fc.integer({ min: 1, max: 200 })), (one, another, others) => {
      const asked = [...new Set([...[...one.keys()].filter((id) => id % 2 === 0), ...others])]
      const encoded = [one, another].map(encodeCounts)
      const reader = new CountReader(kernels, asked, Buffer.concat(encoded))
      for (const [i, drawn] of [one, another].entries()) {
        reader.read(encoded[i]!.length)
        expect([...reader.counts]).toEqual(asked.map((id) => drawn.get(id) ?? 0))
      }
    }),
  )
})
