import type { Block, Layout, ParsedDocument, PlacedLine } from '../ports/document-parser.ts'
import type { RecognisedPage } from '../ports/page-recogniser.ts'
import { namePages } from './name-pages.ts'

/** Limit of processor time per page. */
export const PAGE_CPU_SECONDS = 20
/** Below this mean confidence, about one word in five is wrong. */
const LOW_CONFIDENCE = 75
const SEPARATOR = '\n\n'

type Warning = ParsedDocument['warnings'][number]

/**
 * Returns the document with the recognized text inserted at its pages, and with warnings about pages that OCR could not
 * read well.
 */
export function insertPages(parsed: ParsedDocument, pages: readonly RecognisedPage[]): ParsedDocument {
  const parts: string[] = []
  const blocks: Block[] = []
  const lines: PlacedLine[] = []
  const sizes: Layout['pages'][number][] = [...(parsed.layout?.pages ?? [])]
  let length = 0
  const write = (text: string) => {
    const charStart = length + (length === 0 ? 0 : SEPARATOR.length)
    parts.push(length === 0 ? '' : SEPARATOR, text)
    length = charStart + text.length
    return charStart
  }
  let next = 0
  let nextLine = 0
  const copyLines = (end: number, shift: number) => {
    const placed = parsed.layout?.lines ?? []
    for (; nextLine < placed.length && placed[nextLine]!.charStart < end; nextLine += 1) lines.push(shifted(placed[nextLine]!, shift))
  }
  const copyUntil = (end: number) => {
    if (end === next) return
    const own = parsed.blocks.slice(next, end)
    const from = own[0]!.charStart
    const shift = write(parsed.text.slice(from, own.at(-1)!.charEnd)) - from
    for (const block of own) blocks.push(shifted(block, shift))
    copyLines(own.at(-1)!.charEnd, shift)
    next = end
  }
  for (const { page, paragraphs, layout } of pages) {
    const after = parsed.blocks.findIndex((block, index) => index >= next && (block.page ?? 0) > page)
    copyUntil(after < 0 ? parsed.blocks.length : after)
    for (const [index, text] of paragraphs.entries()) {
      const charStart = write(text)
      blocks.push({ kind: 'paragraph', charStart, charEnd: length, page })
      if (index > 0 || !layout) continue
      sizes.push({ page, width: layout.width, height: layout.height })
      for (const line of layout.lines) lines.push({ page, ...shifted(line, charStart) })
    }
  }
  copyUntil(parsed.blocks.length)
  const own = lines.length > 0 && { layout: { pages: sizes, lines } }
  return { ...parsed, ...own, text: parts.join(''), blocks, warnings: [...parsed.warnings, ...warningsAbout(parsed, pages)], unread: [] }
}

function shifted<T extends { readonly charStart: number; readonly charEnd: number }>(part: T, shift: number): T {
  return { ...part, charStart: part.charStart + shift, charEnd: part.charEnd + shift }
}

function warningsAbout({ unread, pageCount }: ParsedDocument, pages: readonly RecognisedPage[]): readonly Warning[] {
  const read = pages.filter(({ paragraphs }) => paragraphs.length > 0)
  const unsure = read.filter(({ confidence }) => confidence! < LOW_CONFIDENCE)
  const blank = pages.filter(({ confidence, paragraphs }) => confidence !== null && paragraphs.length === 0)
  const tried = new Set(pages.map(({ page }) => page))
  const late = pages.filter(({ isOutOfTime }) => isOutOfTime)
  const failed = [
    ...pages.filter(({ confidence, isOutOfTime }) => confidence === null && !isOutOfTime).map(({ page }) => page),
    ...unread.filter((page) => !tried.has(page)),
  ]
  const warn = (code: Warning['code'], found: readonly number[], message: string): readonly Warning[] =>
    found.length === 0
      ? []
      : [{ code, message: `${found.length} of ${pageCount} pages ${message.replace('%', namePages(found))}`, pages: found }]
  return [
    ...warn('pages_read_by_ocr', numbers(read), 'were read by OCR: %. Some letters may be wrong.'),
    ...warn('ocr_low_confidence', numbers(unsure), 'are hard to read: %. Many words may be wrong. Upload a better scan, at 300 dpi.'),
    ...warn('pages_without_text', numbers(blank), 'have no text that OCR can read: %.'),
    ...warn(
      'pages_unreadable',
      numbers(late),
      `could not be read within ${PAGE_CPU_SECONDS} s of CPU: %. Upload simpler pages, or a scan at 300 dpi.`,
    ),
    ...warn('pages_unreadable', failed, 'could not be read by OCR: %. They take too long, or the document has too many. Split it.'),
  ]
}

function numbers(pages: readonly RecognisedPage[]): readonly number[] {
  return pages.map(({ page }) => page)
}
