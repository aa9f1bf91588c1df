import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Layout, PlacedLine } from '../../ports/document-parser.ts'
import { findLines } from './find-lines.ts'
import { normaliseText } from './normalise-text.ts'
import { findPageBoxes, GROUP_CHARS, groupLines, MAX_BOXES, toLineGroup } from './page-boxes.ts'

const line = (page: number, charStart: number, charEnd: number, y: number): PlacedLine => ({
  page,
  charStart,
  charEnd,
  x: 50,
  y,
  width: 100,
  height: 10,
})

const size = (page: number) => ({ page, width: 600, height: 800 })

/** Finds boxes like a reader of a chunk: only with the groups of its characters. */
function boxesOf(layout: Layout, from: number, to: number) {
  const all = groupLines(layout)
  const groups = Array.from({ length: toLineGroup(to - 1) - toLineGroup(from) + 1 }, (_, index) => all.get(toLineGroup(from) + index))
  return findPageBoxes(
    groups.filter((group) => group !== undefined),
    from,
    to,
  )
}

describe('Bounding boxes of a chunk', () => {
  it('are those of its lines, page by page, relative to the chunk', () => {
    const layout = { pages: [size(1), size(2)], lines: [line(1, 0, 10, 700), line(1, 11, 20, 712), line(2, 22, 30, 50)] }
    const box = { x: 50, width: 100, height: 10 }
    expect(boxesOf(layout, 15, 26)).toEqual([
      { ...size(1), boxes: [{ ...box, y: 712, start: 0, end: 5 }] },
      { ...size(2), boxes: [{ ...box, y: 50, start: 7, end: 11 }] },
    ])
    expect(boxesOf(layout, 20, 22)).toEqual([])
  })

  it('are limited to 64: neighbors are merged', () => {
    const lines = Array.from({ length: 200 }, (_, index) => line(1, index * 10, index * 10 + 9, index * 12))
    const [page] = boxesOf({ pages: [size(1)], lines }, 0, 2_000)
    expect(page!.boxes.length).toBeLessThanOrEqual(MAX_BOXES)
    expect(page!.boxes[0]).toEqual({ x: 50, y: 0, width: 100, height: 46, start: 0, end: 39 })
    expect(page!.boxes.at(-1)!.end).toBe(1_999)
  })

  it('cover all of its lines, wherever it begins and ends', () => {
    const steps = fc.array(fc.record({ gap: fc.nat(3), length: fc.integer({ min: 1, max: GROUP_CHARS }), turns: fc.boolean() }), {
      minLength: 1,
      maxLength: 60,
    })
    fc.assert(
      fc.property(steps, fc.nat(), fc.nat(), (lineSteps, a, b) => {
        let at = 0
        let page = 1
        const lines = lineSteps.map(({ gap, length, turns }) => {
          if (turns) page += 1
          const charStart = at + gap
          at = charStart + length
          return line(page, charStart, at, 10)
        })
        const pages = Array.from({ length: page }, (_, index) => size(index + 1))
        const [from, to] = [a % at, 1 + (b % at)].sort((x, y) => x - y) as [number, number]
        if (from === to) return
        const found = boxesOf({ pages, lines }, from, to).flatMap(({ page: own, boxes }) => boxes.map((box) => ({ own, ...box })))
        const wanted = lines.filter(({ charStart, charEnd }) => charStart < to && charEnd > from)
        expect(found.map(({ own, start, end }) => [own, start + from, end + from])).toEqual(
          wanted.map((each) => [each.page, Math.max(each.charStart, from), Math.min(each.charEnd, to)]),
        )
      }),
    )
  })
})

it('maps lines of a text through any normalization', () => {
  const raw = fc.array(
    fc.array(fc.constantFrom('a', 'é', 'ﻻ', 'ﷲ', ' ', '\t', '\u00ad', 'ب', '\u064b', '🧭', '\ud800', '|'), { maxLength: 12 }),
    {
      maxLength: 8,
    },
  )
  fc.assert(
    fc.property(raw, (input) => {
      const lines = input.map((letters) => letters.join(''))
      const text = normaliseText(lines.join(' '))
      const found = findLines(text, lines)
      const bare = (part: string) => normaliseText(part).replace(/\s/g, '')
      expect(found.map(({ start, end }) => text.slice(start, end).replace(/\s/g, '')).join('')).toBe(text.replace(/\s/g, ''))
      found.forEach(({ start, end }, index) => {
        expect(text.slice(start, end).replace(/\s/g, '').length).toBe(bare(lines[index]!).length)
      })
    }),
  )
})
