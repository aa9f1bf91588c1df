import { foldPresentationForms } from '../../../domain/text/normalise-text.ts'
import type { OutlineItem } from './pdfjs.ts'
import type { Row } from './rows.ts'

/** Maximum titles that are read from the outline, because the outline is untrusted. */
const MAX_OUTLINE_TITLES = 10_000
/** Minimum characters of a title that can match a line. Shorter titles match lines by chance. */
const LEAST_TITLE_CHARS = 3
const MAX_LEVEL = 6
/** A heading's letters are larger than those of the body by this factor. */
const LARGER = 1.15
/** Maximum share of a document's letters in a heading style. A style with more is another kind of body text. */
const MAX_HEADING_SHARE = 0.25
/** A style with at most this number of lines belongs to a title page. */
const TITLE_LINES = 2
const MAX_HEADING_CHARS = 200

interface Style {
  readonly size: number
  readonly isBold: boolean
}

/** Determines which lines of a document are headings. */
export interface Headings {
  /** Returns the level of a title in the outline. */
  titled(text: string): number | undefined
  /** Returns the level of a line by its style, if the style looks like a heading. */
  styled(text: string, style: Style): number | undefined
}

/**
 * Derives the headings from the outline and the text styles.
 * @param rows the rows of all pages
 */
export function findHeadings(outlineItems: readonly OutlineItem[], rows: Iterable<Row>): Headings {
  const outline = readOutline(outlineItems)
  const letters = new Map<string, number>()
  const lines = new Map<string, number>()
  let all = 0
  for (const { segments } of rows) {
    for (const { glyphs, size, isBold } of segments) {
      const key = styleKey({ size, isBold })
      letters.set(key, (letters.get(key) ?? 0) + glyphs.length)
      lines.set(key, (lines.get(key) ?? 0) + 1)
      all += glyphs.length
    }
  }
  const [usual] = [...letters].sort((a, b) => b[1] - a[1])
  const body = readStyleKey(usual?.[0] ?? '0')
  const larger = [...letters]
    .filter(([, count]) => count < all * MAX_HEADING_SHARE)
    .map(([key]) => readStyleKey(key))
    .filter(({ size, isBold }) => size >= body.size * LARGER || (isBold && !body.isBold && size >= body.size))
    .sort((a, b) => b.size - a.size || Number(b.isBold) - Number(a.isBold))
  // A title page has its own sizes. All of them rank above the styles that recur.
  const isRare = (style: Style) => (lines.get(styleKey(style)) ?? 0) <= TITLE_LINES
  const often = larger.filter((style) => !isRare(style))
  const first = often.length < larger.length ? 2 : 1
  const levels = new Map(larger.map((style) => [styleKey(style), 1]))
  for (const [index, style] of often.entries()) levels.set(styleKey(style), Math.min(index + first, MAX_LEVEL))
  return {
    titled: (text) => outline.get(outlineKey(text)),
    styled: (text, style) => (isTitle(text) ? levels.get(styleKey(style)) : undefined),
  }
}

/** Reports whether a text can be a heading: it has words, is not too long, and does not end like a sentence. */
function isTitle(text: string): boolean {
  return text.length <= MAX_HEADING_CHARS && /\p{L}{2}/u.test(text) && !/[.,;،؛]$/u.test(text)
}

function styleKey({ size, isBold }: Style): string {
  return `${Math.round(size * 2) / 2}${isBold ? 'b' : ''}`
}

function readStyleKey(key: string): Style {
  return { size: Number.parseFloat(key), isBold: key.endsWith('b') }
}

/** Normalizes a title so that outline and page match: without numbering, case and white space. */
function outlineKey(title: string): string {
  return foldPresentationForms(title)
    .replace(/^[\s\p{Nd}.]+/u, '')
    .replace(/\s+/g, '')
    .toLowerCase()
}

/** Returns the titles of the document's outline with their levels, 1 to 6, by `outlineKey`. */
function readOutline(items: readonly OutlineItem[]): ReadonlyMap<string, number> {
  const levels = new Map<string, number>()
  const open: { readonly items: readonly OutlineItem[]; readonly level: number }[] = [{ items, level: 1 }]
  for (let next = open.pop(); next; next = open.pop()) {
    for (const { title, items } of next.items) {
      if (levels.size >= MAX_OUTLINE_TITLES) return levels
      const key = outlineKey(String(title))
      if (key.length >= LEAST_TITLE_CHARS && !levels.has(key)) levels.set(key, Math.min(next.level, MAX_LEVEL))
      if (Array.isArray(items)) open.push({ items, level: next.level + 1 })
    }
  }
  return levels
}
