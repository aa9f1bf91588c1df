import { expect, it } from 'vitest'
import { problemOf, toMetadata, toRows } from './metadata.ts'

it('round-trips metadata', () => {
  const metadata = { القسم: 'الموارد البشرية', year: 2026, public: false, code: '007' }
  expect(toMetadata(toRows(metadata))).toEqual(metadata)
})

it.each([null, undefined, 'text', 4])('has no rows for %j', (metadata) => expect(toRows(metadata)).toEqual([]))

it.each([
  ['', 'text', 'a', 'name'],
  ['1st', 'text', 'a', 'name'],
  ['a b', 'text', 'a', 'name'],
  ['year', 'text', 'a', 'twice'],
  ['count', 'number', '1.5', 'number'],
  ['count', 'number', '99999999999999999999', 'number'],
  ['count', 'number', '-12', null],
  ['قسم', 'text', '', null],
] as const)('finds what is wrong with %j, %s, %j', (name, kind, value, problem) => {
  const row = { key: 1, name, kind, value }
  expect(problemOf(row, [{ key: 0, name: 'year', kind: 'text', value: '' }, row])).toBe(problem)
})
