import { expect, it } from 'vitest'
import { readOne, readText } from './search-params.ts'

it('reads a text, including digits, and nothing else', () => {
  expect(['2026', 2026, '', undefined, null, ['a'], { a: 1 }, true].map(readText)).toEqual(['2026', '2026', ...Array(6)])
})

it('reads only permitted values', () => {
  expect(['day', 'year', 1, undefined].map((value) => readOne(['day', 'week'], value))).toEqual(['day', ...Array(3)])
})
