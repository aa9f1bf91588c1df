import fc from 'fast-check'
import { expect, it } from 'vitest'
import { encodeCounts, postingsOf, readCounts } from './chunk-index-counts.ts'

const counts = fc.map(fc.integer({ min: 1, max: 2 ** 31 - 1 }), fc.integer({ min: 1, max: 1_000 }), { maxKeys: 50 })

it('reads back every count, in ascending order of IDs, with the frequency of words', () => {
  fc.assert(
    fc.property(counts, (drawn) => {
      const expected = [...drawn].sort(([a], [b]) => a - b)
      const encoded = encodeCounts(drawn)
      const read: (readonly [number, number])[] = []
      readCounts(encoded, (id, count) => read.push([id, count]))
      expect(read).toEqual(expected)
      const words = new Set([...drawn.keys()].filter((id) => id % 2 === 0))
      const repeated = expected.flatMap(([id, count]) => (words.has(id) ? Array<number>(count).fill(id) : []))
      expect(postingsOf(encoded, words)).toBe(repeated.join(' '))
    }),
  )
})
