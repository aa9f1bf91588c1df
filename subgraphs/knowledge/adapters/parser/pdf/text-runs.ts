import type { PDFPageProxy } from 'pdfjs-dist/legacy/build/pdf.mjs'
import { resolveBareGaps } from './bare-gaps.ts'
import { type GlyphItem, type Matrix, multiplied, readGlyphItems, readTextItems } from './glyph-items.ts'
import type { Pdfjs } from './pdfjs.ts'

/** Maximum slope of a level line, because scans are seldom straight. */
const MAX_SLOPE_RADIANS = 0.1

/** Adjacent glyphs from left to right. A glyph may be several letters, in logical order. */
export interface TextRun {
  readonly glyphs: readonly string[]
  readonly x0: number
  readonly x1: number
  /** The baseline, in points from the top of the page downwards. */
  readonly y: number
  readonly size: number
  readonly isBold: boolean
  readonly font: string
}

/** Text of a page in one direction. The coordinates are those of the page rotated so that the text is upright. */
interface Frame {
  /** The number of quarter turns from upright, or 4 for any other angle. */
  readonly turn: number
  readonly runs: readonly TextRun[]
  /** The height of the page in this frame. */
  readonly height: number
}

/** The text of a page and the page's size. */
interface PageText {
  readonly width: number
  readonly height: number
  readonly frames: readonly Frame[]
}

/**
 * Reads the text of a page, by direction. Upright text comes first.
 * @param hasManyDrawings true if the page's operators may take too much memory
 * @throws {ParseFailure} `limit_exceeded` if the page has too many text items.
 */
export async function readFrames(page: PDFPageProxy, pdfjs: Pdfjs, hasManyDrawings = false): Promise<PageText> {
  const { transform, width, height } = page.getViewport({ scale: 1 })
  // The matrices of pdf.js are lists of six numbers.
  const view = transform as unknown as Matrix
  const frames: readonly (Frame & { readonly runs: TextRun[] })[] = [height, width, height, width, height].map((own, turn) => ({
    turn,
    runs: [],
    height: own,
  }))
  const items = (hasManyDrawings ? await readTextItems(page) : undefined) ?? (await readGlyphItems(page, pdfjs))
  for (const item of items) {
    const { turn, run } = placed(item, view)
    frames[turn]!.runs.push(run)
  }
  const written = frames.filter(({ runs }) => runs.length > 0)
  return { width, height, frames: written.map(({ runs, ...frame }) => ({ ...frame, runs: resolveBareGaps(runs) })) }
}

/**
 * Computes the position of a text item.
 * @returns `turn`, the number of quarter turns from upright, or 4 for any other angle
 */
function placed(
  { transform, width, glyphs, font: { loadedName: font, name } }: GlyphItem,
  view: Matrix,
): { readonly turn: number; readonly run: TextRun } {
  const isBold = /bold|black|heavy|semibold|demi/i.test(name)
  const [a, b, c, d, x, y] = multiplied(view, transform)
  const angle = Math.atan2(b, a)
  const quarters = Math.round(angle / (Math.PI / 2))
  const turn = Math.abs(angle - quarters * (Math.PI / 2)) > MAX_SLOPE_RADIANS ? 4 : (quarters + 4) % 4
  const size = Math.hypot(c, d) || Math.hypot(a, b) || 1
  // Some producers of text under a scan draw upright letters from right to left.
  const isMirrored = turn === 2 && a * d - b * c > 0
  if (isMirrored) return { turn: 0, run: { glyphs: glyphs.toReversed(), x0: x - width, x1: x, y, size, isBold, font } }
  const [x0, own] = turn === 1 ? [y, -x] : turn === 2 ? [-x, -y] : turn === 3 ? [-y, x] : [x, y]
  return { turn, run: { glyphs, x0, x1: x0 + width, y: own, size, isBold, font } }
}
