import { expect, it } from 'vitest'
import type { Row, Segment } from './rows.ts'
import { splitIntoParts } from './tables.ts'

function segment(x0: number, x1: number): Segment {
  const glyphs = ['w']
  return { x0, x1, glyphs, pieces: [{ x0, x1, glyphs }], size: 1, isBold: false }
}

it('returns rows as lines when their cells form no columns, for any number of rows', () => {
  const rows = Array.from({ length: 150_000 }, (_, y): Row => {
    const gap = y % 2 === 0 ? 20 : 60
    return { y, size: 1, segments: [segment(0, gap), segment(gap + 10, 100)] }
  })
  expect(splitIntoParts(rows, false)).toEqual([{ kind: 'lines', rows }])
})
