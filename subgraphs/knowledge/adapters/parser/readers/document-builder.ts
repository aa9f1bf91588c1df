import { normaliseText } from '../../../domain/text/normalise-text.ts'
import { type Block, type BlockLocation, type ParsedDocument, ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'

export type BlockKind = Block['kind']
type Warning = ParsedDocument['warnings'][number]

export interface BlockFacts {
  readonly level?: number
  readonly page?: number
  readonly tableHeader?: string
  readonly location?: BlockLocation
}

/**
 * A header row is repeated for each row below it, so a long one is cut; before it is normalised, which may make it
 * shorter, to more.
 */
const MAX_TABLE_HEADER_CHARS = 1_000
const MAX_RAW_TABLE_HEADER_CHARS = 2 * MAX_TABLE_HEADER_CHARS

/** Kinds whose neighbours stand on the next line rather than after an empty one. */
const CLOSE_KINDS: ReadonlySet<BlockKind> = new Set(['list_item', 'table_row'])

/** Puts normalised blocks one after the other and keeps their offsets. Blocks without text are left out. */
export class DocumentBuilder {
  readonly #limits: ParserLimits
  readonly #parts: string[] = []
  readonly #blocks: Block[] = []
  readonly #warnings: Warning[] = []
  /** Of the row before: a table has one for all of its rows. */
  #header = { raw: '', text: '' }
  #length = 0
  #bytes = 0

  constructor(limits: ParserLimits) {
    this.#limits = limits
  }

  get isEmpty(): boolean {
    return this.#blocks.length === 0
  }

  /** @throws {ParseFailure} `limit_exceeded` */
  add(kind: BlockKind, raw: string, { level, page, tableHeader, location }: BlockFacts = {}): void {
    const text = normaliseText(raw)
    if (text === '') return
    const previous = this.#blocks.at(-1)?.kind
    const separator = previous === undefined ? '' : previous === kind && CLOSE_KINDS.has(kind) ? '\n' : '\n\n'
    this.#bytes += separator.length + Buffer.byteLength(text)
    const { maxTextBytes, maxBlocks } = this.#limits
    if (this.#bytes > maxTextBytes) throw new ParseFailure('limit_exceeded', `The document has more than ${maxTextBytes} bytes of text.`)
    if (this.#blocks.length >= maxBlocks)
      throw new ParseFailure('limit_exceeded', `The document has more than ${maxBlocks} paragraphs and rows.`)
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
  }

  #normaliseHeader(raw: string): string {
    if (raw !== this.#header.raw)
      this.#header = { raw, text: normaliseText(raw.slice(0, MAX_RAW_TABLE_HEADER_CHARS)).slice(0, MAX_TABLE_HEADER_CHARS).toWellFormed() }
    return this.#header.text
  }

  /** Forgets all blocks, for another way to read the file. */
  startAgain(): void {
    this.#parts.length = 0
    this.#blocks.length = 0
    this.#length = 0
    this.#bytes = 0
  }

  warn(code: Warning['code'], message: string, pages: readonly number[] = []): void {
    this.#warnings.push({ code, message, pages })
  }

  build(mediaType: string, pageCount: number | null = null): ParsedDocument {
    return { mediaType, text: this.#parts.join(''), blocks: this.#blocks, pageCount, warnings: this.#warnings }
  }
}
