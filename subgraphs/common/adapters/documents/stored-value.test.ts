import { expect, it } from 'vitest'
import { encodeDocument } from './stored-value.ts'

const MIB = 1024 * 1024

it.each([
  { text: 'a', count: 15 * MIB, fits: true },
  { text: 'a', count: 16 * MIB, fits: false },
  { text: 'ع', count: 7.5 * MIB, fits: true },
  { text: 'ع', count: 8 * MIB, fits: false },
  { text: '漢', count: 5.4 * MIB, fits: false },
])('measures the bytes of a document: $count times $text', ({ text, count, fits }) => {
  const document = { _id: 'x', text: text.repeat(count) }
  if (fits) expect(JSON.parse(encodeDocument(document))).toEqual(document)
  else expect(() => encodeDocument(document)).toThrow(/bytes is larger than 16777216/)
})
