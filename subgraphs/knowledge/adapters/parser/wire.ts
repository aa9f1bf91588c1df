import {
  type Block,
  type BlockLocation,
  DOCUMENT_WARNING_CODES,
  type Layout,
  type ParsedDocument,
  ParseFailure,
  type ParseFailureCode,
  type PlacedLine,
} from '../../ports/document-parser.ts'
import type { RecognisedLayout, RecognisedPage } from '../../ports/page-recogniser.ts'
import type { ParserLimits } from './limits.ts'

/**
 * The request to a parser child. In both directions, a message is one line of JSON followed by raw bytes to the end of
 * the stream: the file for the child, the text in UTF-8 for the parent. Before its result, the child may write lines
 * about the parsed pages. The parent validates every message and trusts nothing else about it.
 */
export interface ParseRequest {
  readonly mediaType: string
  readonly limits: ParserLimits
  readonly defersOcr: boolean
  readonly sizeBytes: number
}

/**
 * The request to recognize pages. The child writes one line of JSON per page. It ends early at a page that it cannot
 * recognize.
 */
export interface RecogniseRequest {
  readonly mediaType: string
  readonly pages: readonly number[]
  readonly sizeBytes: number
}

/** The request for embedded files. For each file, the child writes a line of JSON and the file's bytes. */
export interface UnpackRequest {
  readonly unpack: string
  readonly limits: ParserLimits
  readonly sizeBytes: number
}

type Request = ParseRequest | RecogniseRequest | UnpackRequest

const KINDS = ['heading', 'paragraph', 'list_item', 'table_row', 'code'] as const satisfies readonly Block['kind'][]
const FAILURES: readonly ParseFailureCode[] = [
  'empty',
  'corrupt',
  'password_required',
  'no_text',
  'unsupported_type',
  'limit_exceeded',
  'timeout',
]

/**
 * The kind (index), start, end, level or 0, page or 0, table header (index) or -1, and location (index) or -1. The form
 * is compact because a table may have 100,000 rows.
 */
type PackedBlock = readonly [kind: number, start: number, end: number, level: number, page: number, header: number, location: number]
/** The fields of a `PlacedLine` in order. */
type PackedLine = readonly [page: number, charStart: number, charEnd: number, x: number, y: number, width: number, height: number]
/** `within` (index), start and end. */
type PackedLocation = readonly [within: number, start: string, end: string]

/** Encodes a request as one line of JSON. */
export function encodeRequest(request: Request): Buffer {
  return Buffer.from(`${JSON.stringify(request)}\n`)
}

/**
 * Reads a request in the child, with one copy of the file in memory. Null: the input is empty. The child trusts its
 * parent, so it does not validate the shape.
 */
export async function readRequest(input: AsyncIterable<Buffer>): Promise<{ readonly request: Request; readonly file: Uint8Array } | null> {
  let head = Buffer.alloc(0)
  let request: Request | undefined
  let file = new Uint8Array()
  let filled = 0
  for await (const piece of input) {
    let bytes = piece
    if (!request) {
      head = Buffer.concat([head, piece])
      if (!head.includes(0x0a)) continue
      const { line, rest } = splitLine(head)
      request = JSON.parse(line) as Request
      file = new Uint8Array(request.sizeBytes)
      bytes = rest as Buffer<ArrayBuffer>
    }
    file.set(bytes, filled)
    filled += bytes.length
  }
  if (!request) return null
  // The parent has failed in the middle, and ends this process.
  if (filled < file.length) throw malformed()
  return { request, file }
}

/** Starts a line about pages. A result starts with a brace. */
const PAGES = '+'.charCodeAt(0)
/** Maximum characters of such a line. */
const MAX_PAGES_LINE = 32

/** Encodes a line about parsed pages. */
export function encodePages(done: number, total: number): string {
  return `+${done}/${total}\n`
}

/** Removes the lines about pages from the start of a child's output, and reports their numbers. */
export class PageCounts {
  readonly #maxPages: number
  readonly #onPages: (done: number, total: number) => void
  #rest = Buffer.alloc(0)
  #last = -1
  #areOver = false

  constructor(maxPages: number, onPages: (done: number, total: number) => void) {
    this.#maxPages = maxPages
    this.#onPages = onPages
  }

  /**
   * Returns the part of the next bytes that belongs to the result.
   * @throws {Error} if a line is malformed or does not continue the previous one.
   */
  consume(bytes: Buffer): Buffer {
    if (this.#areOver) return bytes
    let all = Buffer.concat([this.#rest, bytes])
    while (all[0] === PAGES) {
      const end = all.indexOf(0x0a)
      if (end > MAX_PAGES_LINE || (end < 0 && all.length > MAX_PAGES_LINE)) throw malformed()
      if (end < 0) break
      this.#report(all.toString('latin1', 0, end))
      all = all.subarray(end + 1)
    }
    this.#areOver = all.length > 0 && all[0] !== PAGES
    this.#rest = this.#areOver ? Buffer.alloc(0) : all
    return this.#areOver ? all : Buffer.alloc(0)
  }

  #report(line: string): void {
    const [, done, total] = (/^\+(\d+)\/(\d+)$/.exec(line) ?? []).map(Number)
    if (done === undefined || total === undefined || done <= this.#last || done > total || total > this.#maxPages) throw malformed()
    this.#last = done
    this.#onPages(done, total)
  }
}

export function encodeFailure({ code, message }: ParseFailure): Buffer {
  return Buffer.from(`${JSON.stringify({ code, message })}\n`)
}

export function encodePage(page: RecognisedPage): string {
  return `${JSON.stringify(page)}\n`
}

/**
 * Decodes a child's message about a page.
 * @throws {Error} if the message is malformed, or about another page.
 */
export function decodePage(line: string, page: number): RecognisedPage {
  const response: unknown = JSON.parse(line)
  if (!isRecord(response) || response.page !== page) throw malformed()
  const { confidence, paragraphs, layout } = response
  if (!Number.isInteger(confidence) || !Array.isArray(paragraphs)) throw malformed()
  if (!paragraphs.every((text) => typeof text === 'string' && text !== '')) throw malformed()
  const read = { page, confidence: confidence as number, paragraphs: paragraphs as string[] }
  return layout === undefined ? read : { ...read, layout: checkRecognised(layout) }
}

function checkRecognised(layout: unknown): RecognisedLayout {
  if (!isRecord(layout) || !isLength(layout.width) || !isLength(layout.height) || !Array.isArray(layout.lines)) throw malformed()
  let last = 0
  const lines = layout.lines.map((line: unknown) => {
    if (!isRecord(line)) throw malformed()
    const { charStart, charEnd, x, y, width, height } = line
    const { page: _, ...own } = unpackLine([1, charStart, charEnd, x, y, width, height], last)
    last = own.charEnd
    return own
  })
  return { width: layout.width, height: layout.height, lines }
}

/** Encodes the head of an embedded file. `sizeBytes` bytes follow. Null: the file has no bytes. */
export function encodeInnerHead(name: string, sizeBytes: number | null): string {
  return `${JSON.stringify({ name, sizeBytes })}\n`
}

/**
 * Decodes the head of an embedded file.
 * @throws {ParseFailure} the child's verdict.
 * @throws {Error} if the head is malformed.
 */
export function decodeInnerHead(line: string): { readonly name: string; readonly sizeBytes: number | null } {
  const head: unknown = JSON.parse(line)
  if (!isRecord(head)) throw malformed()
  refuseFailure(head)
  const { name, sizeBytes } = head
  if (typeof name !== 'string' || !(sizeBytes === null || (Number.isSafeInteger(sizeBytes) && (sizeBytes as number) >= 0)))
    throw malformed()
  return { name, sizeBytes: sizeBytes as number | null }
}

/** @throws {ParseFailure} the child's verdict, if the response is one. */
function refuseFailure(response: Readonly<Record<string, unknown>>): void {
  if (typeof response.code !== 'string') return
  const code = FAILURES.find((known) => known === response.code)
  throw code ? new ParseFailure(code, String(response.message)) : malformed()
}

/** Encodes a result: one line of JSON, followed by the text in UTF-8. */
export function encodeDocument({ text, blocks, layout, ...facts }: ParsedDocument): Buffer {
  const headers = new Numbered()
  const containers = new Numbered()
  const locations: PackedLocation[] = []
  const packed = blocks.map(({ kind, charStart, charEnd, level, page, tableHeader, location }): PackedBlock => {
    const header = tableHeader === undefined ? -1 : headers.numberOf(tableHeader)
    if (location) locations.push([containers.numberOf(location.within), location.start, location.end])
    return [KINDS.indexOf(kind), charStart, charEnd, level ?? 0, page ?? 0, header, location ? locations.length - 1 : -1]
  })
  const lines = layout?.lines.map(
    ({ page, charStart, charEnd, x, y, width, height }): PackedLine => [page, charStart, charEnd, x, y, width, height],
  )
  const own = layout && { pages: layout.pages.map(({ page, width, height }) => [page, width, height]), lines }
  const head = { ...facts, layout: own, headers: headers.texts, places: containers.texts, locations, blocks: packed }
  return Buffer.from(`${JSON.stringify(head)}\n${text}`)
}

/** Numbers strings, so that each string is written once. */
class Numbered {
  readonly #numbers = new Map<string, number>()

  numberOf(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    this.#numbers.set(text, this.#numbers.size)
    return this.#numbers.size - 1
  }

  get texts(): readonly string[] {
    return [...this.#numbers.keys()]
  }
}

/**
 * Decodes a child's result.
 * @throws {ParseFailure} the child's verdict.
 * @throws {Error} if the result is malformed.
 */
export function decodeDocument(bytes: Buffer): ParsedDocument {
  const { line, rest } = splitLine(bytes)
  const response: unknown = JSON.parse(line)
  if (!isRecord(response)) throw malformed()
  refuseFailure(response)
  const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(rest)
  const { mediaType, pageCount, warnings, unread, hasFiles, headers, places: containers, locations, blocks, layout } = response
  if (typeof mediaType !== 'string' || !(pageCount === null || Number.isSafeInteger(pageCount))) throw malformed()
  if (!Array.isArray(headers) || !Array.isArray(blocks) || !Array.isArray(warnings)) throw malformed()
  if (!Array.isArray(containers) || !Array.isArray(locations) || !isPages(unread) || typeof hasFiles !== 'boolean') throw malformed()
  const placed = locations.map((packed: unknown) => unpackLocation(packed, containers))
  let last = 0
  const unpacked = blocks.map((packed: unknown): Block => {
    const block = unpackBlock(packed, headers, placed)
    if (block.charStart < last || block.charEnd <= block.charStart || block.charEnd > text.length) throw malformed()
    last = block.charEnd
    return block
  })
  return {
    mediaType,
    text,
    blocks: unpacked,
    ...(layout !== undefined && { layout: unpackLayout(layout, text.length) }),
    pageCount: pageCount as number | null,
    warnings: warnings.map(checkWarning),
    unread,
    hasFiles,
  }
}

function unpackLocation(packed: unknown, containers: readonly unknown[]): BlockLocation {
  if (!Array.isArray(packed)) throw malformed()
  // The values are validated below.
  const [container, start, end] = packed as unknown as PackedLocation
  const within = containers[container]
  if (typeof within !== 'string' || typeof start !== 'string' || typeof end !== 'string') throw malformed()
  return { within, start, end }
}

function unpackBlock(packed: unknown, headers: readonly unknown[], locations: readonly BlockLocation[]): Block {
  if (!Array.isArray(packed) || packed.length !== 7 || !packed.every((value) => Number.isSafeInteger(value))) throw malformed()
  // Seven whole numbers, as validated above.
  const [kindIndex, charStart, charEnd, level, page, headerIndex, locationIndex] = packed as unknown as PackedBlock
  const kind = KINDS[kindIndex]
  const tableHeader = headers[headerIndex]
  const location = locations[locationIndex]
  if (!kind || !(tableHeader === undefined || typeof tableHeader === 'string')) throw malformed()
  return {
    kind,
    charStart,
    charEnd,
    ...(level > 0 && { level }),
    ...(page > 0 && { page }),
    ...(tableHeader !== undefined && { tableHeader }),
    ...(location && { location }),
  }
}

function unpackLayout(layout: unknown, textLength: number): Layout {
  if (!isRecord(layout) || !Array.isArray(layout.pages) || !Array.isArray(layout.lines)) throw malformed()
  const pages = layout.pages.map((packed: unknown) => {
    if (!Array.isArray(packed)) throw malformed()
    const [page, width, height] = packed as readonly unknown[]
    if (!isPages([page]) || !isLength(width) || !isLength(height)) throw malformed()
    return { page: page as number, width, height }
  })
  let last = 0
  const lines = layout.lines.map((packed: unknown) => {
    const line = unpackLine(packed, last)
    last = line.charEnd
    return line
  })
  if (last > textLength) throw malformed()
  return { pages, lines }
}

function unpackLine(packed: unknown, from: number): PlacedLine {
  if (!Array.isArray(packed) || packed.length !== 7 || !packed.every(isLength)) throw malformed()
  // Seven finite numbers, as validated above.
  const [page, charStart, charEnd, x, y, width, height] = packed as unknown as PackedLine
  if (!isPages([page]) || !Number.isSafeInteger(charStart) || !Number.isSafeInteger(charEnd)) throw malformed()
  if (charStart < from || charEnd <= charStart) throw malformed()
  return { page, charStart, charEnd, x, y, width, height }
}

function isLength(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function checkWarning(warning: unknown): ParsedDocument['warnings'][number] {
  if (!isRecord(warning) || !isPages(warning.pages)) throw malformed()
  const code = DOCUMENT_WARNING_CODES.find((known) => known === warning.code)
  if (!code) throw malformed()
  return { code, message: String(warning.message), pages: warning.pages }
}

function isPages(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((page) => Number.isSafeInteger(page) && page > 0)
}

function splitLine(bytes: Buffer): { readonly line: string; readonly rest: Buffer } {
  const end = bytes.indexOf(0x0a)
  if (end < 0) throw malformed()
  return { line: bytes.toString('utf8', 0, end), rest: bytes.subarray(end + 1) }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function malformed(): Error {
  return new Error('the parser process returned a malformed response')
}
