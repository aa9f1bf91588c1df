import { describe, expect, it } from 'vitest'
import { Best } from './best-places.ts'
import { Kernels } from './kernels.ts'
import { CodedQuery, encodeVectors, eraseCode } from './vector-codes.ts'

const COUNT = 100
const kernels = new Kernels()

/** Vectors on one side of the origin, as those of texts are. */
function draw(place: number, dimensions: number): Float32Array {
  return Float32Array.from(
    { length: dimensions },
    (_, i) => 0.5 + Math.sin(1 + place * 7.3 + i * (1 + (place % 13))) + Math.cos(place + i * i),
  )
}

function cosine(a: Float32Array, b: Float32Array): number {
  const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, i) => sum + value * y[i]!, 0)
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
}

describe.each([384, 30, 8])('codes of %i components', (dimensions) => {
  const vectors = Array.from({ length: COUNT }, (_, place) => draw(place, dimensions))
  const codes = encodeVectors(COUNT, dimensions, (place) => vectors[place]!)
  const query = draw(1_000, dimensions)
  const coded = new CodedQuery(query)
  const best = new Best(COUNT)
  coded.offerAll(kernels, codes, best, (place) => place)
  const places = Uint32Array.from(best.ids)
  const first = Float64Array.from(best.scores)
  const refined = coded.refine(kernels, codes, places, first)
  const errorOf = (estimates: Float64Array) =>
    Math.sqrt(estimates.reduce((sum, estimate, i) => sum + (estimate - cosine(query, vectors[places[i]!]!)) ** 2, 0) / COUNT)

  it('gives every vector an estimate, and both bits a closer one than the first alone', () => {
    expect([...places]).toEqual([...vectors.keys()])
    expect(errorOf(first)).toBeLessThan(1.2 / Math.sqrt(dimensions))
    expect(errorOf(refined)).toBeLessThan(0.7 * errorOf(first))
  })
})

it('gives a vector that is the centre the cosine of the centre', () => {
  const vector = draw(3, 16)
  const codes = encodeVectors(1, 16, () => vector)
  const query = draw(5, 16)
  const coded = new CodedQuery(query)
  const best = new Best(1)
  coded.offerAll(kernels, codes, best, (place) => place)
  const [refined] = coded.refine(kernels, codes, best.ids, best.scores)
  expect(refined).toBeCloseTo(cosine(query, vector), 4)
})

it('erases all of one vector, and nothing of another', () => {
  const dimensions = 30
  const encode = () => encodeVectors(COUNT, dimensions, (place) => draw(place, dimensions))
  const [codes, erased] = [encode(), encode()]
  for (let place = 0; place < COUNT; place++) if (place !== 40) eraseCode(erased, dimensions, place)
  const bits = (bytes: Uint8Array) => bytes.reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0)
  // What is left is of the one vector: erasing it, too, leaves nothing.
  expect(bits(erased.bits)).toBeGreaterThan(0)
  expect(bits(erased.fineBits)).toBeGreaterThan(0)
  expect(erased.scales[40]).toBe(codes.scales[40])
  eraseCode(erased, dimensions, 40)
  for (const left of [erased.bits, erased.fineBits, erased.scales, erased.fineScales]) expect([...left].every((x) => x === 0)).toBe(true)
  eraseCode(codes, dimensions, 40)
  expect(codes.scales.filter((scale) => scale === 0).length).toBe(1)
  expect(codes.fineScales.filter((scale) => scale === 0).length).toBe(1)
})

it.each([257, 1_000, 3_000])('does not give one of %i vectors away to who subtracts all others from the centre', (count) => {
  const dimensions = 384
  const { centre } = encodeVectors(count, dimensions, (place) => draw(place, dimensions))
  const oneOf = Math.ceil(count / 2_048)
  const sampled = Array.from({ length: Math.ceil(count / oneOf) }, (_, i) => rotatedUnit(draw(i * oneOf, dimensions)))
  const [secret, ...others] = sampled as [Float32Array, ...Float32Array[]]
  const guess = centre.map((x, i) => x * sampled.length - others.reduce((sum, vector) => sum + vector[i]!, 0))
  expect(Math.abs(cosine(guess, secret))).toBeLessThan(0.3)
  // And yet it is near to the mean.
  const mean = centre.map((_, i) => sampled.reduce((sum, vector) => sum + vector[i]!, 0) / sampled.length)
  expect(cosine(centre, mean)).toBeGreaterThan(0.9)
})

/** A vector as the codes take it: it is the centre of itself alone. */
function rotatedUnit(vector: Float32Array): Float32Array {
  return encodeVectors(1, vector.length, () => vector).centre
}
