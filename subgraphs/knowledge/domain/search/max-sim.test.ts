import { expect, it } from 'vitest'
import { toMaxSim } from './max-sim.ts'

/** Returns a query's token embedding that starts with these numbers, followed by zeros. */
const state = (...numbers: readonly number[]) => Int8Array.from({ length: 128 }, (_, i) => numbers[i] ?? 0)
const tokenEmbeddings = (...rows: readonly Int8Array[]) => Int8Array.from(rows.flatMap((row) => [...row]))
/** Returns a chunk's token embeddings that start with these sign bytes. */
const embeddedChunk = (...rows: readonly (readonly number[])[]) =>
  Int8Array.from([1, ...rows.flatMap((row) => Array.from({ length: 16 }, (_, i) => row[i] ?? 0))])
const unit = 127 * Math.sqrt(128)

it('is the mean over query tokens of the best similarity among the token embeddings of the chunk', () => {
  const query = tokenEmbeddings(state(100, 0), state(0, 100))
  expect(toMaxSim(query)(embeddedChunk([0b01], [0b00]))).toBeCloseTo((100 - 100) / 2 / unit, 10)
  expect(toMaxSim(query)(embeddedChunk([0b01], [0b10]))).toBeCloseTo(100 / unit, 10)
  expect(toMaxSim(query)(embeddedChunk([0b00]))).toBeCloseTo(-100 / unit, 10)
  expect(toMaxSim(state(127, -127))(embeddedChunk([0b01]))).toBeCloseTo((2 * 127) / unit, 10)
})

it('reads every byte of the binary code', () => {
  const all = new Int8Array(128).fill(127)
  expect(toMaxSim(all)(embeddedChunk(new Array(16).fill(0xff)))).toBeCloseTo(Math.sqrt(128), 10)
  expect(toMaxSim(all)(embeddedChunk(new Array(16).fill(0xf0)))).toBe(0)
})

it('is null without token embeddings on one side, and for those in another format', () => {
  const of = toMaxSim(state(1))
  expect([
    of(new Int8Array()),
    of(embeddedChunk()),
    of(new Int8Array(128).fill(1)),
    of(Int8Array.of(2, ...embeddedChunk([1]).subarray(1))),
  ]).toEqual([null, null, null, null])
  expect(toMaxSim(new Int8Array())(embeddedChunk([1]))).toBeNull()
})
