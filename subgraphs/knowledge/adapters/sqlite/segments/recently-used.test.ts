import { expect, it } from 'vitest'
import { RecentlyUsed } from './recently-used.ts'

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'] as const

/** Each value is its key in capitals. */
function makeKept(maxBytes: number, ...entries: readonly (readonly [key: string, bytes: number])[]): RecentlyUsed<string> {
  const kept = new RecentlyUsed<string>(maxBytes)
  for (const [key, bytes] of entries) kept.add(key, key.toUpperCase(), bytes)
  return kept
}

/** What is there, without a use that counts: nothing is added afterwards. */
function keysOf(kept: RecentlyUsed<string>): readonly string[] {
  return KEYS.filter((key) => kept.get(key) !== undefined)
}

it('keeps as many bytes as its bound, and not one more', () => {
  expect(keysOf(makeKept(10, ['a', 4], ['b', 6]))).toEqual(['a', 'b'])
  expect(keysOf(makeKept(10, ['a', 4], ['b', 7]))).toEqual(['b'])
})

it('lets what was used longest ago leave first', () => {
  const kept = makeKept(3, ['a', 1], ['b', 1], ['c', 1])
  expect(kept.get('a')).toBe('A')
  kept.add('d', 'D', 1)
  expect(keysOf(kept)).toEqual(['a', 'c', 'd'])
})

it('lets only as many leave as must', () => {
  expect(keysOf(makeKept(10, ['a', 3], ['b', 3], ['c', 3], ['d', 6]))).toEqual(['c', 'd'])
})

it('gives nothing for a key that is not there or has left', () => {
  const kept = makeKept(1, ['a', 1], ['b', 1])
  expect([kept.get('a'), kept.get('x')]).toEqual([undefined, undefined])
})

it('keeps a value that is larger than the bound alone, until the next one', () => {
  const kept = makeKept(10, ['a', 3], ['b', 3], ['c', 11])
  expect(keysOf(kept)).toEqual(['c'])
  kept.add('d', 'D', 1)
  expect(keysOf(kept)).toEqual(['d'])
})

it('counts the bytes of what has left no more', () => {
  const kept = makeKept(10, ['a', 11], ['b', 5], ['c', 5])
  expect(keysOf(kept)).toEqual(['b', 'c'])
  kept.add('d', 'D', 5)
  kept.add('e', 'E', 5)
  expect(keysOf(kept)).toEqual(['d', 'e'])
})

it('counts the bytes of a value that is replaced no more, and takes its key as used', () => {
  const kept = makeKept(10, ['a', 6], ['b', 2])
  kept.add('a', 'other', 3)
  kept.add('c', 'C', 5)
  expect(keysOf(kept)).toEqual(['a', 'b', 'c'])
  const again = makeKept(3, ['a', 1], ['b', 1], ['c', 1], ['a', 1], ['d', 1])
  expect(keysOf(again)).toEqual(['a', 'c', 'd'])
  expect(kept.get('a')).toBe('other')
})

it('drops what is gone, and counts its bytes no more', () => {
  const kept = makeKept(10, ['a', 2], ['b', 5], ['c', 3])
  kept.dropAll((key) => key === 'b')
  expect(keysOf(kept)).toEqual(['a', 'c'])
  kept.add('d', 'D', 5)
  expect(keysOf(kept)).toEqual(['a', 'c', 'd'])
})
