import { expect, it } from 'vitest'
import { readVector, WireVector } from './scalars.ts'

it('a vector is identical within a process, and equal after JSON', () => {
  const floats = Float32Array.from([0.25, -1, 3.4e38, 0]).subarray(1)
  const sent = new WireVector(floats)
  expect(readVector(sent)).toBe(floats)
  expect(readVector(JSON.parse(JSON.stringify(sent)))).toEqual(Float32Array.from(floats))
  expect(JSON.stringify(new WireVector(Float32Array.from([1, 0.5])))).toBe('"AACAPwAAAD8="')
})
