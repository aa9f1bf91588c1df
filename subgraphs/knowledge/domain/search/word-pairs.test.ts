import { expect, it } from 'vitest'
import { findWordPairs } from './word-pairs.ts'

const texts = [
  { chunkId: 'side by side', text: 'She sang the national anthem at Super Bowl 50.' },
  { chunkId: 'apart', text: 'A national broadcast of the Super Bowl; the anthem came later.' },
  { chunkId: 'neither', text: 'Copper pipes.' },
]

it('gives the share of neighbouring words that a passage has side by side', () => {
  expect(findWordPairs('Who did the national anthem at Super Bowl 50?', texts)).toEqual(
    new Map([
      ['side by side', 1],
      ['apart', 1 / 4],
    ]),
  )
})

it('does not mind stop words, forms of a word and which comes first', () => {
  const found = findWordPairs('أدى النشيد الوطني', [
    { chunkId: 'a', text: 'وفي الوطن نشيد' },
    { chunkId: 'b', text: 'النشيد في الوطني' },
  ])
  expect(found.get('b')).toBe(1 / 2)
  expect(findWordPairs('anthems of nations', [{ chunkId: 'a', text: 'the nation and its anthem' }])).toEqual(new Map([['a', 1]]))
})

it('has nothing to compare in a query of one word', () => {
  expect(findWordPairs('anthem', texts)).toEqual(new Map())
})
