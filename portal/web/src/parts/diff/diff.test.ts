import { describe, expect, it } from 'vitest'
import { diffLines, foldSame } from './diff.ts'

const show = (before: string, after: string) =>
  diffLines(before, after).map(({ kind, text }) => `${{ same: ' ', added: '+', removed: '-' }[kind]}${text}`)

describe('Line diff', () => {
  it('lists additions and removals, in order', () => {
    expect(show('a\nb\nc\nd', 'a\nx\nc\ny\nd')).toEqual([' a', '-b', '+x', ' c', '+y', ' d'])
    expect(show('a', 'a')).toEqual([' a'])
    expect(show('a\nb', 'b')).toEqual(['-a', ' b'])
    expect(show('a\na', 'a')).toEqual([' a', '-a'])
  })

  it('finds no line in an empty text', () => {
    expect(show('', '')).toEqual([])
    expect(show('', 'a')).toEqual(['+a'])
    expect(show('a', '')).toEqual(['-a'])
  })

  it('counts the lines of both', () => {
    expect(diffLines('a\nb', 'x\nb')).toEqual([
      { kind: 'removed', text: 'a', before: 1, after: null },
      { kind: 'added', text: 'x', before: null, after: 1 },
      { kind: 'same', text: 'b', before: 2, after: 2 },
    ])
  })

  it('accepts texts of any length', () => {
    const long = (letter: string) => Array.from({ length: 5_000 }, (_, i) => `${letter}${i}`).join('\n')
    expect(diffLines(`s\n${long('a')}\ne`, `s\n${long('b')}\ne`)).toHaveLength(10_002)
  })
})

describe('Folded diff', () => {
  it('omits lines far from a change', () => {
    const before = 'abcdefghij'.split('').join('\n')
    const lines = foldSame(diffLines(before, before.replace('e', 'x')), 1)
    expect(lines.map((line) => (typeof line === 'number' ? line : line.text))).toEqual([3, 'd', 'e', 'x', 'f', 4])
  })
})
