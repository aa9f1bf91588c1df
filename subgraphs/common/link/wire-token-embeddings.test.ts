import { expect, it } from 'vitest'
import { readTokenEmbeddings, WireTokenEmbeddings } from './scalars.ts'

it('token embeddings are identical within a process, and equal after JSON', () => {
  const tokenEmbeddings = Int8Array.from([9, 127, -127, 0, -1]).subarray(1)
  const sent = new WireTokenEmbeddings(tokenEmbeddings)
  expect(readTokenEmbeddings(sent)).toBe(tokenEmbeddings)
  expect(readTokenEmbeddings(JSON.parse(JSON.stringify(sent)))).toEqual(Int8Array.from(tokenEmbeddings))
})
