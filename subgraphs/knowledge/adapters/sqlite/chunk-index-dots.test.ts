import fc from 'fast-check'
import { expect, it } from 'vitest'
import { dotsWith, paddedLength } from './chunk-index-dots.ts'

it('gives the dot products that plain arithmetic gives, at any length', () => {
  const component = fc.integer({ min: -127, max: 127 })
  const drawn = fc.integer({ min: 1, max: 70 }).chain((dimensions) =>
    fc.record({
      query: fc.array(fc.float({ min: -1, max: 1, noNaN: true }), { minLength: dimensions, maxLength: dimensions }),
      vectors: fc.array(fc.array(component, { minLength: dimensions, maxLength: dimensions }), { minLength: 1, maxLength: 5 }),
    }),
  )
  fc.assert(
    fc.property(drawn, ({ query, vectors }) => {
      const length = paddedLength(query.length)
      const bytes = new Int8Array(vectors.length * length)
      for (const [i, vector] of vectors.entries()) bytes.set(vector, i * length)
      const dots = dotsWith(Float32Array.from(query), 5)(new Uint8Array(bytes.buffer))
      for (const [i, vector] of vectors.entries()) {
        const expected = vector.reduce((sum, x, at) => sum + x * query[at]!, 0)
        expect(Math.abs(dots[i]! - expected)).toBeLessThanOrEqual(0.002 * vector.length + 0.001)
      }
    }),
  )
})

it('stays inside 32 bits for the longest vectors of the largest components', () => {
  const query = new Float32Array(4096).fill(1)
  const [dot] = dotsWith(query, 1)(new Uint8Array(new Int8Array(4096).fill(127).buffer))
  expect(dot! / (4096 * 127)).toBeCloseTo(1, 3)
})
