import type { PDFPageProxy } from 'pdfjs-dist/legacy/build/pdf.mjs'
import { ParseFailure } from '../../../ports/document-parser.ts'
import type { GlyphItem, GlyphStyle } from './pdfjs.ts'

/** The number of text pieces of one page. A page of 2,000 words with each letter placed separately has 12,000. */
const MAX_RUNS = 100_000
/** The largest slope of a level line, because scans are seldom straight. */
const MAX_SLOPE_RADIANS = 0.1

/** Adjacent glyphs from left to right. A glyph may be several letters, in logical order. */
export interface TextRun {
  readonly glyphs: readonly string[]
  readonly x0: number
  readonly x1: number
  /** The base line, in points from the top of the page downwards. */
  readonly y: number
  readonly size: number
  readonly isBold: boolean
  readonly font: string
}

/** Text of a page in one direction. The coordinates are those of the page turned so that the text is upright. */
export interface Frame {
  /** The number of quarter turns from upright, or 4 for any other angle. */
  readonly turn: number
  readonly runs: TextRun[]
  /** The height of the page in this frame. */
  readonly height: number
}

/** What a page shows, and its size. */
export interface PageText {
  readonly width: number
  readonly height: number
  readonly frames: readonly Frame[]
}

/**
 * Reads the text of a page, by direction. Upright text comes first.
 * @throws {ParseFailure} `limit_exceeded` if the page has too many pieces of text.
 */
export async function readFrames(page: PDFPageProxy): Promise<PageText> {
  const { transform: view, width, height } = page.getViewport({ scale: 1 })
  const frames: readonly Frame[] = [height, width, height, width, height].map((own, turn) => ({ turn, runs: [], height: own }))
  const bold = new Map<string, boolean>()
  let count = 0
  const reader = page.streamTextContent({ disableNormalization: true }).getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const { items, styles } = read.value as { items: readonly GlyphItem[]; styles: Readonly<Record<string, GlyphStyle>> }
    for (const [font, { name = '' }] of Object.entries(styles)) bold.set(font, /bold|black|heavy|semibold|demi/i.test(name))
    for (const item of items) {
      if (!item.glyphs?.some((glyph) => glyph.trim() !== '')) continue
      count += 1
      if (count > MAX_RUNS) {
        reader.cancel(new Error('too many')).catch(() => undefined)
        throw new ParseFailure('limit_exceeded', `Page ${page.pageNumber} has more than ${MAX_RUNS} pieces of text.`)
      }
      const { turn, run } = placed(item, item.glyphs, view, bold.get(item.fontName) ?? false)
      frames[turn]!.runs.push(run)
    }
  }
  return { width, height, frames: frames.filter(({ runs }) => runs.length > 0) }
}

/**
 * Computes the position of a text item.
 * @returns `turn`, the number of quarter turns from upright, or 4 for any other angle
 */
function placed(
  { transform, width, fontName: font }: GlyphItem,
  glyphs: readonly string[],
  view: readonly number[],
  isBold: boolean,
): { readonly turn: number; readonly run: TextRun } {
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

type Matrix = readonly [number, number, number, number, number, number]

function multiplied(m: readonly number[], n: readonly number[]): Matrix {
  // The matrices of pdf.js are lists of six numbers.
  const [a, b, c, d, e, f] = m as unknown as Matrix
  const [p, q, r, s, t, u] = n as unknown as Matrix
  return [a * p + c * q, b * p + d * q, a * r + c * s, b * r + d * s, a * t + c * u + e, b * t + d * u + f]
}
