import { expect, it } from 'vitest'
import { readTokenEmbeddings, WireTokenEmbeddings } from './scalars.ts'

it('are themselves within a process, and the same numbers after JSON', () => {
  const states = Int8Array.from([9, 127, -127, 0, -1]).subarray(1)
  const sent = new WireTokenEmbeddings(states)
  expect(readTokenEmbeddings(sent)).toBe(states)
  expect(readTokenEmbeddings(JSON.parse(JSON.stringify(sent)))).toEqual(Int8Array.from(states))
})
