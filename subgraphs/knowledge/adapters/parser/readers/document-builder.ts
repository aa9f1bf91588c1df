import { sizeText } from '../../../../common/sizes.ts'
import { findLines } from '../../../domain/text/find-lines.ts'
import { normaliseText } from '../../../domain/text/normalise-text.ts'
import {
  type Block,
  type BlockLocation,
  type Box,
  type Layout,
  type ParsedDocument,
  ParseFailure,
  type PlacedLine,
} from '../../../ports/document-parser.ts'
import { MAX_PLACED_LINES, type ParserLimits } from '../limits.ts'

type BlockKind = Block['kind']
type Warning = ParsedDocument['warnings'][number]

export interface BlockFacts {
  readonly level?: number
  readonly page?: number
  readonly tableHeader?: string
  readonly location?: BlockLocation
  /** Where its page shows the block. */
  readonly placed?: Placed
}

interface Placed {
  /** The size of the page. */
  readonly size: { readonly width: number; readonly height: number }
  /** The lines of the block in order, each with the text that it has before normalising. */
  readonly lines: readonly { readonly text: string; readonly box: Box | null }[]
}

/**
 * Every row carries the header of its table, so a long header is cut. It is cut before normalising as well, at twice
 * the length, because normalising may shorten it.
 */
const MAX_TABLE_HEADER_CHARS = 1_000
const MAX_RAW_TABLE_HEADER_CHARS = 2 * MAX_TABLE_HEADER_CHARS

/** Blocks of these kinds follow each other on the next line. Other blocks follow after an empty line. */
const CLOSE_KINDS: ReadonlySet<BlockKind> = new Set(['list_item', 'table_row'])

/** Normalises blocks, joins them to one text and keeps their offsets. Leaves out blocks without text. */
export class DocumentBuilder {
  readonly #limits: ParserLimits
  readonly #parts: string[] = []
  readonly #blocks: Block[] = []
  readonly #warnings: Warning[] = []
  readonly #lines: PlacedLine[] = []
  readonly #pages: Layout['pages'][number][] = []
  /** The header of the previous row. Most rows of a table have the same one. */
  #header = { raw: '', text: '' }
  #length = 0
  #bytes = 0
  #unread: readonly number[] = []
  /** Whether pages that are pictures are left for OCR, instead of being warned about or refused. */
  readonly defersOcr: boolean
  /** Tells how many pages have been read. */
  readonly onPages: (done: number, total: number) => void
  /** Whether other files are inside, such as attachments. */
  hasFiles = false

  constructor(limits: ParserLimits, defersOcr = false, onPages: (done: number, total: number) => void = () => undefined) {
    this.#limits = limits
    this.defersOcr = defersOcr
    this.onPages = onPages
  }

  /** Whether it has nothing, and leaves nothing for OCR. */
  get isEmpty(): boolean {
    return this.#blocks.length === 0 && this.#unread.length === 0
  }

  /** Leaves these pages for OCR. */
  deferPages(pages: readonly number[]): void {
    this.#unread = pages
  }

  /**
   * Adds a block.
   * @throws {ParseFailure} `limit_exceeded` if the document has too much text or too many blocks.
   */
  add(kind: BlockKind, raw: string, { level, page, tableHeader, location, placed }: BlockFacts = {}): void {
    const text = normaliseText(raw)
    if (text === '') return
    const previous = this.#blocks.at(-1)?.kind
    const separator = previous === undefined ? '' : previous === kind && CLOSE_KINDS.has(kind) ? '\n' : '\n\n'
    this.#bytes += separator.length + Buffer.byteLength(text)
    const { maxTextBytes, maxBlocks } = this.#limits
    if (this.#bytes > maxTextBytes)
      throw new ParseFailure('limit_exceeded', `The document has more than ${sizeText(maxTextBytes)} of text. Split it into smaller files.`)
    if (this.#blocks.length >= maxBlocks)
      throw new ParseFailure('limit_exceeded', `The document has more than ${maxBlocks} paragraphs and rows. Split it into smaller files.`)
    const charStart = this.#length + separator.length
    this.#length = charStart + text.length
    this.#parts.push(separator, text)
    this.#blocks.push({
      kind,
      charStart,
      charEnd: this.#length,
      ...(level !== undefined && { level }),
      ...(page !== undefined && { page }),
      ...(tableHeader !== undefined && { tableHeader: this.#normaliseHeader(tableHeader) }),
      ...(location && { location }),
    })
    if (page !== undefined && placed) this.#layOut(text, charStart, page, placed)
  }

  #layOut(text: string, charStart: number, page: number, { size, lines }: Placed): void {
    if (this.#lines.length + lines.length > MAX_PLACED_LINES) return
    const ranges = findLines(
      text,
      lines.map((line) => line.text),
    )
    for (const [index, { box }] of lines.entries()) {
      const { start, end } = ranges[index]!
      if (box && end > start) this.#lines.push({ page, charStart: charStart + start, charEnd: charStart + end, ...box })
    }
    if (this.#lines.at(-1)?.page === page && this.#pages.at(-1)?.page !== page) this.#pages.push({ page, ...size })
  }

  #normaliseHeader(raw: string): string {
    if (raw !== this.#header.raw)
      this.#header = { raw, text: normaliseText(raw.slice(0, MAX_RAW_TABLE_HEADER_CHARS)).slice(0, MAX_TABLE_HEADER_CHARS).toWellFormed() }
    return this.#header.text
  }

  /** Removes all blocks, so that the file can be read in another way. Keeps the warnings. */
  startAgain(): void {
    this.#parts.length = 0
    this.#blocks.length = 0
    this.#lines.length = 0
    this.#pages.length = 0
    this.#length = 0
    this.#bytes = 0
  }

  /** Adds a warning. `pages` is empty if the warning concerns the whole document. */
  warn(code: Warning['code'], message: string, pages: readonly number[] = []): void {
    this.#warnings.push({ code, message, pages })
  }

  /** Returns the document. `pageCount` is null for a format without pages. */
  build(mediaType: string, pageCount: number | null = null): ParsedDocument {
    return {
      mediaType,
      text: this.#parts.join(''),
      blocks: this.#blocks,
      ...(this.#lines.length > 0 && { layout: { pages: this.#pages, lines: this.#lines } }),
      pageCount,
      warnings: this.#warnings,
      unread: this.#unread,
      hasFiles: this.hasFiles,
    }
  }
}
