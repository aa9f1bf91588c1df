import { expect, it } from 'vitest'
import { diffLines } from './diff.ts'

const SIGNS = { same: ' ', removed: '-', added: '+' } as const
const diff = (before: string, after: string) => diffLines(before, after).map(({ kind, text }) => SIGNS[kind] + text)

it.each([
  ['', '', []],
  ['', 'a', ['+a']],
  ['a', '', ['-a']],
  ['a\nb\nc', 'a\nb\nc', [' a', ' b', ' c']],
  ['a\nb\nc', 'a\nx\nc', [' a', '-b', '+x', ' c']],
  ['a\nb\nc\nd', 'b\nc\ne\nd', ['-a', ' b', ' c', '+e', ' d']],
  ['a\na', 'a', [' a', '-a']],
] as const)('compares %j with %j', (before, after, lines) => expect(diff(before, after)).toEqual(lines))

it('takes long texts that share no line', () => {
  const text = (sign: string) => Array.from({ length: 16_000 }, (_, line) => `${sign}${line}`).join('\n')
  const lines = diffLines(text('a'), text('b'))
  expect(lines).toHaveLength(32_000)
  expect(lines[0]!.kind).toBe('removed')
  expect(lines.at(-1)!.kind).toBe('added')
})
