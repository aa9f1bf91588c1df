import { expect, it } from 'vitest'
import { toLines } from './marks.ts'

const write = (text: string, marks: readonly (readonly [number, number])[]) =>
  toLines(
    text,
    marks.map(([start, end]) => ({ start, end })),
  ).map(({ pieces }) => pieces.map(({ text, isMarked }) => (isMarked ? `[${text}]` : text)).join(''))

it.each([
  ['no mark', 'one\ntwo', [], ['one', 'two']],
  ['a mark within a line', 'one two', [[4, 7]], ['one [two]']],
  ['a mark over several lines', 'one\ntwo\nthree', [[2, 10]], ['on[e]', '[two]', '[th]ree']],
  [
    'marks that overlap, in no order',
    'abcdef',
    [
      [3, 5],
      [1, 4],
    ],
    ['a[bcde]f'],
  ],
  [
    'marks outside the text',
    'abc',
    [
      [-5, 1],
      [2, 90],
      [50, 60],
      [2, 2],
    ],
    ['[a]b[c]'],
  ],
  ['empty lines', 'a\n\n  \nb', [[0, 9]], ['[a]', '[b]']],
  ['Arabic', 'سياسة التوظيف', [[6, 13]], ['سياسة [التوظيف]']],
  ['no text', '', [[0, 3]], []],
] as const)('splits a text with %s', (_, text, marks, lines) => expect(write(text, marks)).toEqual(lines))
