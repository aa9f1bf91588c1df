import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import openWabt from 'wabt'
import { aligned, dotsWith, KERNELS, Kernels } from './kernels.ts'

it('has the bytes that its source assembles to', async () => {
  const wabt = await openWabt()
  const source = wabt.parseWat('kernels.wat', readFileSync(new URL('./kernels.wat', import.meta.url), 'utf8'), {
    simd: true,
    bulk_memory: true,
  })
  try {
    expect(KERNELS.toString('base64')).toBe(Buffer.from(source.toBinary({}).buffer).toString('base64'))
  } finally {
    source.destroy()
  }
})

it('gives the dot products that plain arithmetic gives, at any length and distance', () => {
  const component = fc.integer({ min: -127, max: 127 })
  const drawn = fc.integer({ min: 1, max: 70 }).chain((dimensions) =>
    fc.record({
      before: fc.integer({ min: 0, max: 20 }),
      query: fc.array(fc.float({ min: -1, max: 1, noNaN: true }), { minLength: dimensions, maxLength: dimensions }),
      vectors: fc.array(fc.array(component, { minLength: dimensions, maxLength: dimensions }), { minLength: 1, maxLength: 5 }),
    }),
  )
  const kernels = new Kernels()
  fc.assert(
    fc.property(drawn, ({ before, query, vectors }) => {
      const stride = before + aligned(query.length)
      const bytes = new Int8Array(vectors.length * stride).fill(99)
      for (const [i, vector] of vectors.entries()) bytes.fill(0, i * stride + before, (i + 1) * stride).set(vector, i * stride + before)
      const dots = dotsWith(kernels, Float32Array.from(query), new Uint8Array(bytes.buffer), before)
      expect(dots).toHaveLength(vectors.length)
      for (const [i, vector] of vectors.entries()) {
        const expected = vector.reduce((sum, x, at) => sum + x * query[at]!, 0)
        expect(Math.abs(dots[i]! - expected)).toBeLessThanOrEqual(0.002 * vector.length + 0.001)
      }
    }),
  )
})

it('stays inside 32 bits for the longest vectors of the largest components', () => {
  const query = new Float32Array(4096).fill(1)
  const [dot] = dotsWith(new Kernels(), query, new Uint8Array(new Int8Array(4096).fill(127).buffer), 0)
  expect(dot! / (4096 * 127)).toBeCloseTo(1, 3)
})

it('gives the places of all values that reach a bound, and of no NaN', () => {
  const value = fc.oneof(fc.float({ noNaN: true }), fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0))
  const kernels = new Kernels()
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.array(value, { minLength: 128, maxLength: 128 }), value, (blocks, drawn, least) => {
      const values = new Float32Array(kernels.reserve(1_024), 0, 16 * blocks)
      values.set(drawn.slice(0, values.length))
      const found = kernels.functions.atLeast(0, values.length, least, 512)
      const places = new Uint32Array(kernels.reserve(0), 512, found)
      expect([...places]).toEqual([...values.keys()].filter((place) => values[place]! >= least))
    }),
  )
})
