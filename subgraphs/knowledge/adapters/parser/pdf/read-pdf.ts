import { setImmediate } from 'node:timers/promises'
import { sizeText } from '../../../../common/sizes.ts'
import { namePages } from '../../../domain/name-pages.ts'
import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { Brackets } from './brackets.ts'
import { findFlows } from './columns.ts'
import { findFalseMarks, withoutFalseMarks } from './false-marks.ts'
import { findHeadings, type Headings } from './headings.ts'
import { directionCounts } from './logical-order.ts'
import { rounded, toPageBox } from './page-box.ts'
import { type PageBlock, toParagraphs } from './paragraphs.ts'
import { checkPdfStreams } from './pdf-streams.ts'
import { openPdf, type Pdf } from './pdfjs.ts'
import { areStamped, findRepeatedRows } from './repeated-rows.ts'
import { type Row, toRows } from './rows.ts'
import { splitIntoParts, type TableRow } from './tables.ts'
import { isLegible, isUnknown } from './text-quality.ts'
import { readFrames } from './text-runs.ts'

const USE_OCR = 'set `ocr` of the collection to `auto`, or upload a copy with recognized text'
const NO_LETTERS = `The fonts do not say which letters their glyphs stand for. To read them, ${USE_OCR}.`
const IF_SHOWN = `If they show text, ${USE_OCR}.`

/** Pages between two progress reports. Each report becomes an event of the document, like each batch of its chunks. */
const PAGES_PER_REPORT = 16

/** Bytes of a page with some 200,000 lines, whose operators take 350 MB. */
const MANY_DRAWINGS_BYTES = 3 * 1024 * 1024

type OpenPdf = Pdf & { readonly hasManyDrawings: boolean }

interface Page {
  readonly number: number
  /** The height of the page in the first frame. */
  readonly height: number
  /** The size of the page as displayed. */
  readonly size: { readonly width: number; readonly height: number }
  /** The rows of upright text, followed by those of text in other directions. */
  readonly frames: readonly (readonly Row[])[]
  /** The quarter turns of each frame; see `text-runs.ts`. */
  readonly turns: readonly number[]
  readonly isRtl: boolean
  /** The share of the page's glyphs that have no known character. */
  readonly unknown: number
}

/**
 * Reads the text of each page in reading order, as headings, paragraphs and table rows. Returns the number of pages.
 * Pages with images only cause the warning `pages_without_text`, and pages whose fonts do not identify their letters
 * cause `pages_unreadable`. If the builder defers OCR, such pages are left to OCR instead.
 * @throws {ParseFailure} `password_required` or `corrupt` if the PDF cannot be opened.
 * @throws {ParseFailure} `limit_exceeded` if the PDF exceeds a limit.
 * @throws {ParseFailure} `no_text` if no page has readable text.
 */
export async function readPdf(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<number> {
  const hasManyDrawings = checkPdfStreams(bytes, limits.maxInflatedBytes) > MANY_DRAWINGS_BYTES
  const pdf = { ...(await openPdf(bytes)), hasManyDrawings }
  const total = pdf.document.numPages
  if (total > limits.maxPages)
    throw new ParseFailure('limit_exceeded', `The PDF has ${total} pages, and the service reads at most ${limits.maxPages}. Split it.`)
  const pages = await readPages(pdf, limits, builder)
  const repeated = findRepeatedRows(pages)
  const headings = findHeadings(pdf.outline, listAllRows(pages))
  const isScan = areStamped(pages)
  const empty: number[] = []
  const illegible: number[] = []
  for (const page of pages) {
    await setImmediate()
    const rows = page.frames.map((all) => all.filter((row) => !repeated.again.has(row)))
    const own = rows.map((all) => all.filter((row) => !repeated.first.has(row)))
    if (isScan || !hasLetters(own)) {
      empty.push(page.number)
      continue
    }
    const reading = { isRtl: page.isRtl, headings, noHeadings: repeated.first }
    const blocks = rows.flatMap((all, frame) => toBlocks(all, reading).map((block) => ({ block, turn: page.turns[frame]! })))
    if (!isLegible(blocks.map(({ block }) => block.text).join(' '), page.unknown)) illegible.push(page.number)
    else for (const { block, turn } of blocks) addBlock(builder, page, block, turn)
  }
  if (builder.defersOcr) builder.deferPages([...empty, ...illegible].sort((a, b) => a - b))
  else sayWhatIsMissing(builder, total, empty, illegible)
  return total
}

function addBlock(builder: DocumentBuilder, page: Page, { kind, text, lines, ...facts }: Block, turn: number): void {
  const placed = lines.map((line) => ({ text: line.text, box: toPageBox(line.area, turn, page.size) }))
  builder.add(kind, text, { page: page.number, ...facts, placed: { size: page.size, lines: placed } })
}

/**
 * Warns about pages without readable text.
 * @throws {ParseFailure} `no_text` if no page has readable text.
 */
function sayWhatIsMissing(builder: DocumentBuilder, total: number, empty: readonly number[], illegible: readonly number[]): void {
  if (empty.length === total)
    throw new ParseFailure('no_text', `The PDF has no text: its pages are images or drawings. To read them, ${USE_OCR}.`)
  if (empty.length + illegible.length === total) throw new ParseFailure('no_text', `The text of the PDF cannot be read. ${NO_LETTERS}`)
  if (empty.length > 0)
    builder.warn('pages_without_text', `${empty.length} of ${total} pages have no text: ${namePages(empty)}. ${IF_SHOWN}`, empty)
  if (illegible.length > 0) {
    const message = `${illegible.length} of ${total} pages cannot be read: ${namePages(illegible)}. ${NO_LETTERS}`
    builder.warn('pages_unreadable', message, illegible)
  }
}

function hasLetters(frames: readonly (readonly Row[])[]): boolean {
  return frames.some((rows) =>
    rows.some(({ segments }) => segments.some(({ glyphs }) => glyphs.some((glyph) => /\p{L}|[\ue000-\uf8ff\ufffd]/u.test(glyph)))),
  )
}

async function readPages(pdf: OpenPdf, limits: ParserLimits, { onPages }: DocumentBuilder): Promise<readonly Page[]> {
  const pages: Page[] = []
  const total = pdf.document.numPages
  onPages(0, total)
  const brackets = new Brackets()
  let letters = 0
  for (let number = 1; number <= total; number += 1) {
    // pdf.js runs only in microtasks. The pause lets timers run, among them the check for the parent.
    await setImmediate()
    const page = await readPage(pdf, number, brackets)
    for (const { segments } of page.frames.flat()) for (const { glyphs } of segments) letters += glyphs.length
    if (letters > limits.maxTextBytes)
      throw new ParseFailure(
        'limit_exceeded',
        `The document has more than ${sizeText(limits.maxTextBytes)} of text. Split it into smaller files.`,
      )
    pages.push(page)
    if (number % PAGES_PER_REPORT === 0 || number === total) onPages(number, total)
  }
  const drawn = findFalseMarks(listAllRows(pages))
  if (drawn.size === 0) return pages
  return pages.map((page) => ({ ...page, frames: page.frames.map((rows) => rows.map((row) => withoutFalseMarks(row, drawn))) }))
}

/** Reads a page. A page that fails becomes a page without text, so that the other pages are still read. */
async function readPage({ document, pdfjs, hasManyDrawings }: OpenPdf, number: number, brackets: Brackets): Promise<Page> {
  try {
    const page = await document.getPage(number)
    const { width, height, frames: found } = await readFrames(page, pdfjs, hasManyDrawings)
    page.cleanup()
    const frames = found.map(({ runs }) => toRows(brackets.corrected(runs)))
    const lines = frames.flatMap((rows) => rows.map(({ segments }) => segments.flatMap(({ glyphs }) => [...glyphs, ' '])))
    const { rtl, ltr } = directionCounts(lines.flat())
    const glyphs = found.flatMap(({ runs }) => runs.flatMap((run) => run.glyphs))
    const unknown = glyphs.filter(isUnknown).length / glyphs.length
    const turns = found.map(({ turn }) => turn)
    const size = { width: rounded(width), height: rounded(height) }
    return { number, height: found[0]?.height ?? 0, size, frames, turns, isRtl: rtl > ltr, unknown }
  } catch (error) {
    if (error instanceof ParseFailure) throw error
    return { number, height: 0, size: { width: 0, height: 0 }, frames: [], turns: [], isRtl: false, unknown: 0 }
  }
}

function* listAllRows(pages: readonly Page[]): Generator<Row> {
  for (const { frames } of pages) for (const rows of frames) yield* rows
}

type Block = PageBlock & { readonly tableHeader?: string }

interface Reading {
  readonly isRtl: boolean
  readonly headings: Headings
  readonly noHeadings: ReadonlySet<Row>
}

function toBlocks(rows: readonly Row[], reading: Reading): readonly Block[] {
  return findFlows(rows, reading.isRtl).flatMap(({ rows: own, x0, x1 }) =>
    splitIntoParts(own, reading.isRtl).flatMap((part): readonly Block[] => {
      if (part.kind === 'lines') return toParagraphs(part.rows, { x0, x1, ...reading })
      const { header, rows: cells } = part
      if (!header) return cells.map((row) => toTableRow(row.cells.filter((cell) => cell !== '').join(' | '), row))
      const tableHeader = header.cells.join(' | ')
      return [toTableRow(tableHeader, header), ...cells.map((row) => ({ ...toTableRow(row.cells.join(' | '), row), tableHeader }))]
    }),
  )
}

/** A row is one line, however many lines its cells have. */
function toTableRow(text: string, { area }: TableRow): Block {
  return { kind: 'table_row', text, lines: [{ text, area }] }
}
