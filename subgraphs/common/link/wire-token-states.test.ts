import { expect, it } from 'vitest'
import { readTokenStates, WireTokenStates } from './scalars.ts'

it('are themselves within a process, and the same numbers after JSON', () => {
  const states = Int8Array.from([9, 127, -127, 0, -1]).subarray(1)
  const sent = new WireTokenStates(states)
  expect(readTokenStates(sent)).toBe(states)
  expect(readTokenStates(JSON.parse(JSON.stringify(sent)))).toEqual(Int8Array.from(states))
})
