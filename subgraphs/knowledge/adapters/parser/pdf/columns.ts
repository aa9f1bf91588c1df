import type { Row, Segment } from './rows.ts'

/** The number of positions across a page at which `findFlows` looks for a gap between columns. */
const BINS = 200
/** The largest number of rows. A page with more is read without columns. */
const MAX_ROWS = 5_000
const MAX_DEPTH = 6
/** The number of lines that each side of a new gap needs. One line is enough where the page already has a gap. */
const LEAST_LINES = 4
/**
 * A side of a gap is running text if its median line has at least this fill and this number of letters. The fill is the
 * share of the space beside the gap that the line takes. Lines with less are cells of a table.
 */
const LEAST_FILL = 0.6
const LEAST_LETTERS = 16
/** The least width of a column, as a share of the page's width. */
const LEAST_COLUMN = 0.12

/** Rows that are read one after the other, and their left and right edges. */
interface Flow {
  readonly rows: readonly Row[]
  readonly x0: number
  readonly x1: number
}

/** Returns the columns of a page, and the rows above, between and below them, in reading order. */
export function findFlows(rows: readonly Row[], isRtl: boolean): readonly Flow[] {
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
  /** Positions of the gaps found so far. */
  readonly known: number[]
}

function split(flow: Flow, page: Page, depth: number): readonly Flow[] {
  if (flow.rows.length === 0) return []
  const gap = depth < MAX_DEPTH ? widestGap(flow, page) : undefined
  if (!gap) return [flow]
  page.known.push(gap.x)
  const { x, first, last } = gap
  const sides = [cutSide(flow, first, last, (segment) => segment.x1 <= x), cutSide(flow, first, last, (segment) => segment.x0 >= x)]
  if (page.isRtl) sides.reverse()
  return [
    ...split({ ...flow, rows: flow.rows.slice(0, first) }, page, depth + 1),
    ...sides.flatMap((side) => split(side, page, depth + 1)),
    ...split({ ...flow, rows: flow.rows.slice(last + 1) }, page, depth + 1),
  ]
}

interface Gap {
  readonly x: number
  /** The first and last row with the gap. */
  readonly first: number
  readonly last: number
}

/** Returns the gap with the most lines beside it, if both sides are running text. */
function widestGap(flow: Flow, page: Page): Gap | undefined {
  const step = page.width / BINS
  const positions = Math.floor((flow.x1 - flow.x0) / step)
  let best: (Gap & { readonly lines: number }) | undefined
  for (let position = 1; position < positions; position += 1) {
    const x = flow.x0 + position * step
    const isKnown = page.known.some((known) => Math.abs(known - x) < 1.5 * step)
    for (const gap of gapsAt(flow.rows, x)) {
      if (gap.lines > (best?.lines ?? 0) && gap.lines >= (isKnown ? 1 : LEAST_LINES) && partsText(flow, gap, page, isKnown)) best = gap
    }
  }
  return best
}

/** Yields runs of rows that leave a position free. `lines` is the number of lines on the side with fewer. */
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
  const sides = [cutSide(flow, first, last, (segment) => segment.x1 <= x), cutSide(flow, first, last, (segment) => segment.x0 >= x)]
  return sides.every(({ rows, x0, x1 }, index) => {
    if (x1 - x0 < page.width * LEAST_COLUMN) return false
    if (isKnown) return true
    const sideWidth = index === 0 ? x - flow.x0 : flow.x1 - x
    const fills = rows.map(({ segments }) => (segments.at(-1)!.x1 - segments[0]!.x0) / sideWidth).sort((a, b) => a - b)
    const letters = rows.map(({ segments }) => segments.reduce((sum, { glyphs }) => sum + glyphs.filter(isLetter).length, 0))
    letters.sort((a, b) => a - b)
    return fills[fills.length >> 1]! >= LEAST_FILL && letters[letters.length >> 1]! >= LEAST_LETTERS
  })
}

function isLetter(glyph: string): boolean {
  return /\p{L}/u.test(glyph)
}

function cutSide(flow: Flow, first: number, last: number, isInside: (segment: Segment) => boolean): Flow {
  const rows = flow.rows.slice(first, last + 1).flatMap((row) => {
    const segments = row.segments.filter(isInside)
    return segments.length === 0 ? [] : [{ ...row, segments }]
  })
  const x0 = rows.reduce((least, { segments }) => Math.min(least, segments[0]!.x0), Infinity)
  const x1 = rows.reduce((most, { segments }) => Math.max(most, segments.at(-1)!.x1), -Infinity)
  return { rows, x0, x1 }
}
