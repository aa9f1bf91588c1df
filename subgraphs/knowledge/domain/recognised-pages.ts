import type { Block, ParsedDocument } from '../ports/document-parser.ts'
import type { RecognisedPage } from '../ports/page-recogniser.ts'
import { namePages } from './name-pages.ts'

/** Below this mean confidence, about one word in five is wrong. */
const LOW_CONFIDENCE = 75
const SEPARATOR = '\n\n'

type Warning = ParsedDocument['warnings'][number]

/** Returns the document with the text of recognised pages in its place, and warnings about them and the other pages. */
export function insertPages(parsed: ParsedDocument, pages: readonly RecognisedPage[]): ParsedDocument {
  const parts: string[] = []
  const blocks: Block[] = []
  let length = 0
  const write = (text: string) => {
    const charStart = length + (length === 0 ? 0 : SEPARATOR.length)
    parts.push(length === 0 ? '' : SEPARATOR, text)
    length = charStart + text.length
    return charStart
  }
  let next = 0
  const copyUntil = (end: number) => {
    if (end === next) return
    const own = parsed.blocks.slice(next, end)
    const from = own[0]!.charStart
    const shift = write(parsed.text.slice(from, own.at(-1)!.charEnd)) - from
    for (const block of own) blocks.push({ ...block, charStart: block.charStart + shift, charEnd: block.charEnd + shift })
    next = end
  }
  for (const { page, paragraphs } of pages) {
    const after = parsed.blocks.findIndex((block, index) => index >= next && (block.page ?? 0) > page)
    copyUntil(after < 0 ? parsed.blocks.length : after)
    for (const text of paragraphs) {
      const charStart = write(text)
      blocks.push({ kind: 'paragraph', charStart, charEnd: length, page })
    }
  }
  copyUntil(parsed.blocks.length)
  return { ...parsed, text: parts.join(''), blocks, warnings: [...parsed.warnings, ...warningsAbout(parsed, pages)], unread: [] }
}

function warningsAbout({ unread, pageCount }: ParsedDocument, pages: readonly RecognisedPage[]): readonly Warning[] {
  const read = pages.filter(({ paragraphs }) => paragraphs.length > 0)
  const unsure = read.filter(({ confidence }) => confidence! < LOW_CONFIDENCE)
  const blank = pages.filter(({ confidence, paragraphs }) => confidence !== null && paragraphs.length === 0)
  const tried = new Set(pages.map(({ page }) => page))
  const failed = [
    ...pages.filter(({ confidence }) => confidence === null).map(({ page }) => page),
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
    ...warn('pages_unreadable', failed, 'could not be read by OCR: %. They take too long, or the document has too many. Split it.'),
  ]
}

function numbers(pages: readonly RecognisedPage[]): readonly number[] {
  return pages.map(({ page }) => page)
}
