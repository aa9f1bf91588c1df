import { directionCounts, logicalText } from './logical-order.ts'
import type { TextRun } from './text-runs.ts'

/**
 * Baselines closer than this share of the smaller letters are one line, because calligraphic fonts raise and lower
 * letters.
 */
const SAME_LINE = 0.45
/** Letters below this share of the usual size may be a footnote mark above a line. */
const SMALL = 0.8
const MAX_MARK_GLYPHS = 4
/** Minimum gaps between words, and between cells or columns, as shares of the letter size. */
const WORD_GAP = 0.12
const CELL_GAP = 0.9
/** A line is bold if more than this share of its letters is bold. */
const ALL_BOLD = 0.8
/** Text that is drawn twice within this share of its size is bold text drawn with an offset. */
const SAME_POSITION = 0.12

interface Piece {
  readonly x0: number
  readonly x1: number
  /** The glyphs from left to right, with spaces at gaps. */
  readonly glyphs: readonly string[]
}

/** Adjacent text on a line: a line of a column, or a cell. */
export interface Segment extends Piece {
  /** The pieces of the segment. A table splits the segment between them. */
  readonly pieces: readonly Piece[]
  readonly size: number
  readonly isBold: boolean
}

/** The text on one baseline, from left to right. */
export interface Row {
  readonly y: number
  readonly size: number
  readonly segments: readonly Segment[]
}

/** Extents of letters above and below their baseline, as shares of their size. Arabic letters reach further below. */
const ASCENT = 0.9
const DESCENT = 0.35

/** The edges of a piece of text, in its frame. */
export interface Area {
  readonly x0: number
  readonly x1: number
  readonly y0: number
  readonly y1: number
}

/** Returns the edges of a row, from the top to the bottom of its letters. */
export function areaOf({ y, size, segments }: Row): Area {
  const x1 = segments.reduce((most, segment) => Math.max(most, segment.x1), -Infinity)
  return { x0: segments[0]!.x0, x1, y0: y - ASCENT * size, y1: y + DESCENT * size }
}

/** Returns the smallest area that has all these areas. */
export function areaAround(areas: readonly Area[]): Area {
  return areas.reduce((all, { x0, x1, y0, y1 }) => ({
    x0: Math.min(all.x0, x0),
    x1: Math.max(all.x1, x1),
    y0: Math.min(all.y0, y0),
    y1: Math.max(all.y1, y1),
  }))
}

/** Joins runs into rows, from the top of the page. */
export function toRows(runs: readonly TextRun[]): readonly Row[] {
  const usual = findUsualSize(runs)
  const isSmall = ({ size, glyphs }: TextRun) => size < usual * SMALL && glyphs.length <= MAX_MARK_GLYPHS
  const lines = toLines(runs.filter((run) => !isSmall(run)))
  const left = runs.filter(isSmall).filter((run) => !joinsLine(lines, run))
  return [...lines, ...toLines(left)]
    .map(({ runs: all }) => {
      // The longest run determines the baseline, because raised and lowered letters are few.
      const { y, size } = all.reduce((longest, run) => (run.glyphs.length > longest.glyphs.length ? run : longest))
      return { y, size, segments: toSegments(all) }
    })
    .sort((a, b) => a.y - b.y)
}

interface Line {
  readonly y: number
  size: number
  x0: number
  x1: number
  readonly runs: TextRun[]
}

function toLines(runs: readonly TextRun[]): readonly Line[] {
  const lines: Line[] = []
  for (const run of runs.toSorted((a, b) => a.y - b.y)) {
    const line = lines.at(-1)
    if (line && run.y - line.y < SAME_LINE * Math.min(line.size, run.size)) {
      line.runs.push(run)
      line.size = Math.max(line.size, run.size)
      line.x0 = Math.min(line.x0, run.x0)
      line.x1 = Math.max(line.x1, run.x1)
    } else lines.push({ y: run.y, size: run.size, x0: run.x0, x1: run.x1, runs: [run] })
  }
  return lines
}

/** Adds a footnote mark to the adjacent line. Returns false if there is no such line. */
function joinsLine(lines: readonly Line[], run: TextRun): boolean {
  let low = 0
  let high = lines.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (lines[middle]!.y < run.y) low = middle + 1
    else high = middle
  }
  for (const line of [lines[low], lines[low - 1]]) {
    if (!line) continue
    const isBeside = run.x1 > line.x0 - line.size / 2 && run.x0 < line.x1 + line.size / 2
    if (isBeside && run.y > line.y - line.size * 0.6 && run.y < line.y + line.size * 0.3) {
      line.runs.push(run)
      return true
    }
  }
  return false
}

function toSegments(runs: readonly TextRun[]): readonly Segment[] {
  const segments: { x0: number; x1: number; glyphs: string[]; pieces: Piece[]; size: number; bold: number }[] = []
  let previous: TextRun | undefined
  for (const run of withMarks(runs)) {
    if (previous && isRepeat(previous, run)) continue
    const open = segments.at(-1)
    const size = previous ? Math.min(previous.size, run.size) : run.size
    const gap = open ? run.x0 - open.x1 : 0
    const bold = run.isBold ? run.glyphs.length : 0
    if (!open || gap > CELL_GAP * size) {
      const glyphs = trimmed(run.glyphs)
      segments.push({ x0: run.x0, x1: run.x1, glyphs: [...glyphs], pieces: [{ x0: run.x0, x1: run.x1, glyphs }], size: run.size, bold })
    } else {
      const isApart = gap > WORD_GAP * size || previous?.glyphs.at(-1) === ' ' || run.glyphs[0] === ' '
      const glyphs = isApart ? [' ', ...trimmed(run.glyphs)] : trimmed(run.glyphs)
      for (const glyph of glyphs) open.glyphs.push(glyph)
      open.pieces.push({ x0: run.x0, x1: run.x1, glyphs })
      open.x1 = Math.max(open.x1, run.x1)
      open.size = Math.max(open.size, run.size)
      open.bold += bold
    }
    previous = run
  }
  return segments.map(({ bold, ...segment }) => ({ ...segment, isBold: bold > segment.glyphs.length * ALL_BOLD }))
}

/** Inserts separately placed vowel marks to the left of the letters below them. */
function withMarks(runs: readonly TextRun[]): readonly TextRun[] {
  const marks = runs.filter(isOnlyMarks)
  const sorted = runs.filter((run) => !isOnlyMarks(run)).toSorted((a, b) => a.x0 - b.x0)
  if (marks.length === 0 || sorted.length === 0) return sorted.length > 0 ? sorted : runs
  const glyphs = sorted.map((run) => [...run.glyphs])
  // Insert from the right, so that insertions do not shift the positions of later marks.
  for (const mark of marks.toSorted((a, b) => b.x0 - a.x0)) {
    const at = Math.max(0, lastStartingBefore(sorted, mark.x0 + mark.size * SAME_POSITION))
    const { x0, x1, glyphs: letters } = sorted[at]!
    const share = x1 > x0 ? (mark.x0 - x0) / (x1 - x0) : 0
    const insertAt = Math.min(letters.length, Math.max(0, Math.floor(share * letters.length)))
    glyphs[at]!.splice(insertAt, 0, ...mark.glyphs)
  }
  return sorted.map((run, index) => ({ ...run, glyphs: glyphs[index]! }))
}

function lastStartingBefore(sorted: readonly TextRun[], x: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]!.x0 <= x) low = middle + 1
    else high = middle
  }
  return low - 1
}

function isOnlyMarks({ glyphs }: TextRun): boolean {
  return glyphs.length < 3 && glyphs.every((glyph) => /^[\p{M}\s]+$/u.test(glyph))
}

function isRepeat(a: TextRun, b: TextRun): boolean {
  const near = SAME_POSITION * a.size
  return (
    Math.abs(a.x0 - b.x0) < near &&
    Math.abs(a.x1 - b.x1) < near &&
    Math.abs(a.y - b.y) < near &&
    a.glyphs.length === b.glyphs.length &&
    a.glyphs.every((glyph, index) => glyph === b.glyphs[index])
  )
}

function trimmed(glyphs: readonly string[]): string[] {
  let start = 0
  let end = glyphs.length
  while (start < end && glyphs[start] === ' ') start += 1
  while (end > start && glyphs[end - 1] === ' ') end -= 1
  return glyphs.slice(start, end)
}

/** Returns the size of most letters, or 0 if there are none. */
function findUsualSize(pieces: readonly { readonly size: number; readonly glyphs: readonly string[] }[]): number {
  const letters = new Map<number, number>()
  for (const { size, glyphs } of pieces) {
    const key = Math.round(size * 2) / 2
    letters.set(key, (letters.get(key) ?? 0) + glyphs.length)
  }
  let usual = 0
  for (const [size, count] of letters) if (count > (letters.get(usual) ?? 0)) usual = size
  return usual
}

/**
 * Reports whether a line is right-to-left: it has about as many words of that direction as of the other. On a
 * right-to-left page, a few such words are enough.
 */
export function isRightToLeft(glyphs: readonly string[], isRtlPage: boolean): boolean {
  const { rtl, ltr } = directionCounts(glyphs)
  if (rtl + ltr === 0) return isRtlPage
  return rtl >= (isRtlPage ? 0.15 : 0.7) * ltr && rtl > 0
}

/** Returns the text of the segments of one line. */
export function joinText(segments: readonly Segment[], isRtlPage: boolean): string {
  const glyphs = segments.flatMap((segment, index) => (index === 0 ? segment.glyphs : [' ', ...segment.glyphs]))
  return logicalText(glyphs, isRightToLeft(glyphs, isRtlPage))
}
