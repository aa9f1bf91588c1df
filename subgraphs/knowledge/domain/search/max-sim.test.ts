import { expect, it } from 'vitest'
import { maxSim } from './max-sim.ts'

/** A state that has these numbers first, and then none. */
const state = (...numbers: readonly number[]) => Int8Array.from({ length: 128 }, (_, i) => numbers[i] ?? 0)
const states = (...rows: readonly Int8Array[]) => Int8Array.from(rows.flatMap((row) => [...row]))

it('is the mean of what the nearest states of the passage have in common with those of the query', () => {
  const query = states(state(100, 0), state(0, 100))
  expect(maxSim(query, states(state(100, 0), state(50, 0)))).toBe((100 * 100 + 0) / 2)
  expect(maxSim(query, states(state(50, 0), state(0, 20)))).toBe((50 * 100 + 20 * 100) / 2)
  expect(maxSim(query, state(-100, -1))).toBe((-100 * 100 - 100) / 2)
  expect(maxSim(state(127, -127), state(127, -127))).toBe(2 * 127 ** 2)
})

it('is 0 without states on one side', () => {
  expect([maxSim(new Int8Array(), state(1)), maxSim(state(1), new Int8Array())]).toEqual([0, 0])
})
