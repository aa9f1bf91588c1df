import { expect, it } from 'vitest'
import { queryTerms } from '../text/text-analysis.ts'
import { findHighlights } from './highlights.ts'

const marked = (text: string, query: string) =>
  findHighlights(text, new Set(queryTerms(query).words)).map(({ start, end }) => text.slice(start, end))

it.each<[string, string, readonly string[]]>([
  ['A Flight; flights are paid.', 'paid flight', ['Flight', 'flights', 'paid']],
  ['The form of the thing', 'the form of', ['form']],
  ['تُقدَّم طلباتُ الإجازة قبل أسبوعين', 'اجازه', ['الإجازة']],
  ['مــرحــبــا بكم', 'مرحبا', ['مــرحــبــا']],
  ['وللإجازات السنوية', 'الإجازات', ['وللإجازات']],
  ['المادة ١٨ من النظام', '18', ['١٨']],
  ['😀 café 😀 CAFÉ', 'café', ['café', 'CAFÉ']],
  ['nothing here', 'اجازة', []],
])('%s highlighted for %s', (text, query, found) => {
  expect(marked(text, query)).toEqual(found)
})

it('highlights at most 64 words', () => {
  expect(marked('word '.repeat(100), 'word')).toHaveLength(64)
})
