import type { PDFDocumentProxy } from 'pdfjs-dist/legacy/build/pdf.mjs'
import { foldPresentationForms } from '../../../domain/text/normalise-text.ts'
import type { Row } from './rows.ts'

/** Outlines are attacker-made trees too. */
const MAX_OUTLINE_TITLES = 10_000
/** Shorter titles match lines by chance. */
const LEAST_TITLE_CHARS = 3
const MAX_LEVEL = 6
/** Letters larger than the text's by this factor are a heading's. */
const LARGER = 1.15
/** Letters of a style that its text needs not to be a heading's: a style of more is another kind of text. */
const MAX_HEADING_SHARE = 0.25
/** Lines of a style that only a title has. */
const TITLE_LINES = 2
const MAX_HEADING_CHARS = 200

export interface Style {
  readonly size: number
  readonly isBold: boolean
}

/** Which lines of a document are headings. */
export interface Headings {
  /** The level that the outline gives a title. */
  titled(text: string): number | undefined
  /** The level of lines of a style that looks like a heading's. */
  styled(text: string, style: Style): number | undefined
}

/** @param rows of all pages. */
export async function headingsOf(pdf: PDFDocumentProxy, rows: Iterable<Row>): Promise<Headings> {
  const outline = await outlineOf(pdf)
  const letters = new Map<string, number>()
  const lines = new Map<string, number>()
  let all = 0
  for (const { segments } of rows) {
    for (const { glyphs, size, isBold } of segments) {
      const key = keyOf({ size, isBold })
      letters.set(key, (letters.get(key) ?? 0) + glyphs.length)
      lines.set(key, (lines.get(key) ?? 0) + 1)
      all += glyphs.length
    }
  }
  const [usual] = [...letters].sort((a, b) => b[1] - a[1])
  const body = styleOf(usual?.[0] ?? '0')
  const larger = [...letters]
    .filter(([, count]) => count < all * MAX_HEADING_SHARE)
    .map(([key]) => styleOf(key))
    .filter(({ size, isBold }) => size >= body.size * LARGER || (isBold && !body.isBold && size >= body.size))
    .sort((a, b) => b.size - a.size || Number(b.isBold) - Number(a.isBold))
  // Letters of a title page come in sizes of their own, and all of them stand above what comes again.
  const isRare = (style: Style) => (lines.get(keyOf(style)) ?? 0) <= TITLE_LINES
  const often = larger.filter((style) => !isRare(style))
  const first = often.length < larger.length ? 2 : 1
  const levels = new Map(larger.map((style) => [keyOf(style), 1]))
  for (const [index, style] of often.entries()) levels.set(keyOf(style), Math.min(index + first, MAX_LEVEL))
  return {
    titled: (text) => outline.get(outlineKeyOf(text)),
    styled: (text, style) => (isTitle(text) ? levels.get(keyOf(style)) : undefined),
  }
}

/** Words, not too many of them, and no sentence. */
function isTitle(text: string): boolean {
  return text.length <= MAX_HEADING_CHARS && /\p{L}{2}/u.test(text) && !/[.,;،؛]$/u.test(text)
}

function keyOf({ size, isBold }: Style): string {
  return `${Math.round(size * 2) / 2}${isBold ? 'b' : ''}`
}

function styleOf(key: string): Style {
  return { size: Number.parseFloat(key), isBold: key.endsWith('b') }
}

/** A title as outline and page have it in common: without numbering, case and white space. */
export function outlineKeyOf(title: string): string {
  return foldPresentationForms(title)
    .replace(/^[\s\p{Nd}.]+/u, '')
    .replace(/\s+/g, '')
    .toLowerCase()
}

interface OutlineItem {
  readonly title: unknown
  readonly items: readonly OutlineItem[]
}

/**
 * Titles of the document's outline with their levels, 1 to 6, by `outlineKeyOf`; none when there is no outline or it is
 * damaged.
 */
async function outlineOf(pdf: PDFDocumentProxy): Promise<ReadonlyMap<string, number>> {
  const levels = new Map<string, number>()
  const items = ((await pdf.getOutline().catch(() => null)) ?? []) as readonly OutlineItem[]
  const open: { readonly items: readonly OutlineItem[]; readonly level: number }[] = [{ items, level: 1 }]
  for (let next = open.pop(); next; next = open.pop()) {
    for (const { title, items } of next.items) {
      if (levels.size >= MAX_OUTLINE_TITLES) return levels
      const key = outlineKeyOf(String(title))
      if (key.length >= LEAST_TITLE_CHARS && !levels.has(key)) levels.set(key, Math.min(next.level, MAX_LEVEL))
      if (Array.isArray(items)) open.push({ items, level: next.level + 1 })
    }
  }
  return levels
}
