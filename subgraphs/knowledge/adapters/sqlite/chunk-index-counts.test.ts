import fc from 'fast-check'
import { expect, it } from 'vitest'
import { decodeCounts, encodeCounts, toCounts } from './chunk-index-counts.ts'

const counts = fc.map(fc.integer({ min: 1, max: 2 ** 31 - 1 }), fc.integer({ min: 1, max: 100_000 }), { maxKeys: 50 })

it('gives back every count, ascending by id', () => {
  fc.assert(
    fc.property(counts, (drawn) => {
      const expected = [...drawn].sort(([a], [b]) => a - b).flat()
      expect([...decodeCounts(encodeCounts(drawn))]).toEqual(expected)
    }),
  )
})

it('gives the counts of the terms asked for, and of no other', () => {
  fc.assert(
    fc.property(counts, fc.array(fc.integer({ min: 1, max: 200 })), (drawn, others) => {
      const asked = [...new Set([...[...drawn.keys()].filter((id) => id % 2 === 0), ...others])].sort((a, b) => a - b)
      expect(toCounts(asked, encodeCounts(drawn))).toEqual(
        new Map(asked.flatMap((id) => (drawn.has(id) ? [[id, drawn.get(id)!] as const] : []))),
      )
    }),
  )
})
