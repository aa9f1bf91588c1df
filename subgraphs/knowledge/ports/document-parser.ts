/** A span of the text with one role. Blocks are in order and do not overlap. Only white space lies between them. */
export interface Block {
  readonly kind: 'heading' | 'paragraph' | 'list_item' | 'table_row' | 'code'
  /** UTF-16 offsets into `text`. */
  readonly charStart: number
  readonly charEnd: number
  /** 1 to 6. Only headings have it. */
  readonly level?: number
  /** The page on which the block starts, from 1, in formats with pages. No block crosses a page end. */
  readonly page?: number
  /** Text of the header row. Only table rows below a header have it. */
  readonly tableHeader?: string
  /** Location in formats without pages. */
  readonly location?: BlockLocation
}

/**
 * A range of sheet cells (`Sales!`, `A2`, `D2`), of rows (`row `, `2`, `2`), or of times in a recording (``,
 * `00:01:05`, `00:01:09`).
 */
export interface BlockLocation {
  /** Prefix that names what `start` and `end` belong to. Empty if the document has only one such part. */
  readonly within: string
  readonly start: string
  readonly end: string
}

/**
 * A rectangle on a page. `x` and `y` are the left and upper edges, measured from the left and upper edges of the page
 * as displayed, after its rotation. In points (1/72 inch), or in pixels for images.
 */
export interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** A line of the text, or a row of a table, with its rectangle on the page. */
export interface PlacedLine extends Box {
  readonly page: number
  /** UTF-16 offsets into the text. */
  readonly charStart: number
  readonly charEnd: number
}

/** Positions of the text on the pages. */
export interface Layout {
  /** Sizes of the pages that have lines, in the unit of the lines. */
  readonly pages: readonly { readonly page: number; readonly width: number; readonly height: number }[]
  /** In the order of the text. Their text ranges do not overlap. */
  readonly lines: readonly PlacedLine[]
}

/** Warnings about parts of a document that could not be read. */
export const DOCUMENT_WARNING_CODES = [
  'pages_without_text',
  'pages_unreadable',
  'pages_read_by_ocr',
  'ocr_low_confidence',
  'replaced_characters',
  'structure_lost',
  'attachments_not_read',
  'files_not_read',
] as const
type DocumentWarningCode = (typeof DOCUMENT_WARNING_CODES)[number]

/** The text of a document with its structure. */
export interface ParsedDocument {
  readonly mediaType: string
  /**
   * Normalized: NFC, Arabic presentation forms folded to letters, no control characters except line feed and tab, at
   * most two line feeds in a row.
   */
  readonly text: string
  readonly blocks: readonly Block[]
  /** Absent in formats without a fixed page layout. */
  readonly layout?: Layout
  readonly pageCount: number | null
  readonly warnings: readonly {
    readonly code: DocumentWarningCode
    readonly message: string
    readonly pages: readonly number[]
  }[]
  /** Pages without readable text that are left to OCR, in order. `text` contains nothing of them. */
  readonly unread: readonly number[]
  /** Whether the file contains files, which `unpack` yields. */
  readonly hasFiles: boolean
}

/** A file inside an archive, or an attachment of a message. */
export interface InnerFile {
  /** Includes the folders, if any. */
  readonly name: string
  /** Null if the file cannot be unpacked or is too large. */
  readonly bytes: Uint8Array | null
}

/** Reasons why a file cannot be parsed. */
export type ParseFailureCode = 'empty' | 'corrupt' | 'password_required' | 'no_text' | 'unsupported_type' | 'limit_exceeded' | 'timeout'

/** A file that is too large to be held in memory. */
export interface StreamedFile {
  readonly sizeBytes: number
  /** The start and the end of the file, and the number of bytes omitted between them. */
  readonly sample: { readonly bytes: Uint8Array; readonly cutBytes: number }
  /** Yields all bytes in order. Each call starts from the first byte. */
  stream(): AsyncIterable<Uint8Array>
}

/** A permanent failure: parsing the file again fails in the same way. */
export class ParseFailure extends Error {
  readonly code: ParseFailureCode
  constructor(code: ParseFailureCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ParseFailure'
    this.code = code
  }
}

export interface ParseOptions {
  /**
   * Leaves images and pages without text in `unread`. By default, such pages cause a warning, and images are refused.
   */
  readonly defersOcr?: boolean
  /**
   * Called with the number of parsed pages of a PDF: first with 0, last with the total, in between with some of the
   * counts.
   */
  readonly onPages?: (done: number, total: number) => void
}

/**
 * Extracts text and structure from untrusted bytes, in a separate process with limits of time, memory and decompressed
 * size.
 */
export interface DocumentParser extends AsyncDisposable {
  /**
   * Returns the media type by the bytes and, for text formats, by the extension. `application/octet-stream` if unknown.
   * `cutBytes` is the number of bytes that were omitted between the two ends of a large file.
   */
  sniff(bytes: Uint8Array, fileName: string, cutBytes?: number): string
  /**
   * @throws {ParseFailure} the file cannot be parsed
   * @throws {Error} the parser process could not run; try again later
   */
  parse(file: Uint8Array | StreamedFile, fileName: string, signal: AbortSignal, options?: ParseOptions): Promise<ParsedDocument>
  /**
   * Yields the files inside a file that `parse` has read, one at a time, in order.
   * @throws {ParseFailure} the file cannot be unpacked
   * @throws {Error} the parser process could not run; try again later
   */
  unpack(file: Uint8Array | StreamedFile, mediaType: string, signal: AbortSignal): AsyncIterable<InnerFile>
}
