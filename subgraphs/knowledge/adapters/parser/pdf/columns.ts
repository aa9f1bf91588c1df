import type { Row, Segment } from './rows.ts'

/** Places across a page at which a gap between columns is looked for. */
const BINS = 200
/** More rows than a page can show are read without columns. */
const MAX_ROWS = 5_000
const MAX_DEPTH = 6
/** Lines that each side of a gap needs; one where the page has a gap at that place already. */
const LEAST_LINES = 4
/**
 * The share of the place up to the gap that a column's middle line fills, and the words on it, when it is running text
 * and not a column of a table.
 */
const LEAST_FILL = 0.6
const LEAST_LETTERS = 16
/** Of the page's width. */
const LEAST_COLUMN = 0.12

/** Rows that are read one after the other, within these sides. */
export interface Flow {
  readonly rows: readonly Row[]
  readonly x0: number
  readonly x1: number
}

/** The columns of a page and what stands above, between and below them, in the order of reading. */
export function flowsOf(rows: readonly Row[], isRtl: boolean): readonly Flow[] {
  if (rows.length === 0) return []
  const x0 = rows.reduce((least, { segments }) => Math.min(least, segments[0]!.x0), Infinity)
  const x1 = rows.reduce((most, { segments }) => segments.reduce((far, segment) => Math.max(far, segment.x1), most), -Infinity)
  const flow = { rows, x0, x1 }
  if (rows.length > MAX_ROWS || !(x1 > x0)) return [flow]
  return split(flow, { isRtl, width: x1 - x0, known: [] }, 0)
}

interface Page {
  readonly isRtl: boolean
  readonly width: number
  /** Where gaps were found. */
  readonly known: number[]
}

function split(flow: Flow, page: Page, depth: number): readonly Flow[] {
  if (flow.rows.length === 0) return []
  const gap = depth < MAX_DEPTH ? widestGap(flow, page) : undefined
  if (!gap) return [flow]
  page.known.push(gap.x)
  const { x, first, last } = gap
  const sides = [sideOf(flow, first, last, (segment) => segment.x1 <= x), sideOf(flow, first, last, (segment) => segment.x0 >= x)]
  if (page.isRtl) sides.reverse()
  return [
    ...split({ ...flow, rows: flow.rows.slice(0, first) }, page, depth + 1),
    ...sides.flatMap((side) => split(side, page, depth + 1)),
    ...split({ ...flow, rows: flow.rows.slice(last + 1) }, page, depth + 1),
  ]
}

interface Gap {
  readonly x: number
  /** Rows that have it, first and last. */
  readonly first: number
  readonly last: number
}

/** The gap with most lines beside it, if what it parts is running text on both sides. */
function widestGap(flow: Flow, page: Page): Gap | undefined {
  const step = page.width / BINS
  const places = Math.floor((flow.x1 - flow.x0) / step)
  let best: (Gap & { readonly lines: number }) | undefined
  for (let place = 1; place < places; place += 1) {
    const x = flow.x0 + place * step
    const isKnown = page.known.some((known) => Math.abs(known - x) < 1.5 * step)
    for (const gap of gapsAt(flow.rows, x)) {
      if (gap.lines > (best?.lines ?? 0) && gap.lines >= (isKnown ? 1 : LEAST_LINES) && partsText(flow, gap, page, isKnown)) best = gap
    }
  }
  return best
}

/** Runs of rows in which nothing stands at a place; `lines` is how many the side with fewer has. */
function* gapsAt(rows: readonly Row[], x: number): Generator<Gap & { readonly lines: number }> {
  let first = -1
  let last = -1
  let left = 0
  let right = 0
  const reset = () => {
    first = -1
    left = 0
    right = 0
  }
  for (let index = 0; index <= rows.length; index += 1) {
    const segments = rows[index]?.segments
    const isFree = segments?.every((segment) => segment.x1 <= x || segment.x0 >= x)
    if (!segments || !isFree) {
      if (left > 0 && right > 0) yield { x, first, last, lines: Math.min(left, right) }
      reset()
      continue
    }
    const isLeft = segments[0]!.x1 <= x
    const isRight = segments.at(-1)!.x0 >= x
    if (first < 0) first = index
    last = index
    if (isLeft) left += 1
    if (isRight) right += 1
  }
}

function partsText(flow: Flow, { x, first, last }: Gap, page: Page, isKnown: boolean): boolean {
  const sides = [sideOf(flow, first, last, (segment) => segment.x1 <= x), sideOf(flow, first, last, (segment) => segment.x0 >= x)]
  return sides.every(({ rows, x0, x1 }, index) => {
    if (x1 - x0 < page.width * LEAST_COLUMN) return false
    if (isKnown) return true
    const place = index === 0 ? x - flow.x0 : flow.x1 - x
    const fills = rows.map(({ segments }) => (segments.at(-1)!.x1 - segments[0]!.x0) / place).sort((a, b) => a - b)
    const letters = rows.map(({ segments }) => segments.reduce((sum, { glyphs }) => sum + glyphs.filter(isLetter).length, 0))
    letters.sort((a, b) => a - b)
    return fills[fills.length >> 1]! >= LEAST_FILL && letters[letters.length >> 1]! >= LEAST_LETTERS
  })
}

function isLetter(glyph: string): boolean {
  return /\p{L}/u.test(glyph)
}

function sideOf(flow: Flow, first: number, last: number, isInside: (segment: Segment) => boolean): Flow {
  const rows = flow.rows.slice(first, last + 1).flatMap((row) => {
    const segments = row.segments.filter(isInside)
    return segments.length === 0 ? [] : [{ ...row, segments }]
  })
  const x0 = rows.reduce((least, { segments }) => Math.min(least, segments[0]!.x0), Infinity)
  const x1 = rows.reduce((most, { segments }) => Math.max(most, segments.at(-1)!.x1), -Infinity)
  return { rows, x0, x1 }
}
