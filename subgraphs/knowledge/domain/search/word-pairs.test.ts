import { expect, it } from 'vitest'
import { findWordPairs } from './word-pairs.ts'

const texts = [
  { chunkId: 'side by side', text: 'She sang the national anthem at Super Bowl 50.' },
  { chunkId: 'apart', text: 'A national broadcast of the Super Bowl; the anthem came later.' },
  { chunkId: 'neither', text: 'Copper pipes.' },
]

it('returns the share of adjacent query words that are adjacent in a chunk', () => {
  expect(findWordPairs('Who did the national anthem at Super Bowl 50?', texts)).toEqual(
    new Map([
      ['side by side', 1],
      ['apart', 1 / 4],
    ]),
  )
})

it('ignores stop words, inflection and order', () => {
  const found = findWordPairs('أدى النشيد الوطني', [
    { chunkId: 'a', text: 'وفي الوطن نشيد' },
    { chunkId: 'b', text: 'النشيد في الوطني' },
  ])
  expect(found.get('b')).toBe(1 / 2)
  expect(findWordPairs('anthems of nations', [{ chunkId: 'a', text: 'the nation and its anthem' }])).toEqual(new Map([['a', 1]]))
})

it('returns null for a query of one word', () => {
  expect(findWordPairs('anthem', texts)).toEqual(new Map())
})
