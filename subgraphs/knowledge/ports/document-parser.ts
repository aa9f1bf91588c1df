/**
 * A run of the text with one role. Blocks are in order, do not overlap, and leave out only white space between them.
 */
export interface Block {
  readonly kind: 'heading' | 'paragraph' | 'list_item' | 'table_row' | 'code'
  /** UTF-16 offsets into `text`. */
  readonly charStart: number
  readonly charEnd: number
  /** 1 to 6, only for headings. */
  readonly level?: number
  /** The page where the block begins, from 1, in formats with pages. Blocks are cut at page ends. */
  readonly page?: number
  /** Text of the header row, for table rows below one. */
  readonly tableHeader?: string
  /** Where a reader finds it in formats that count otherwise than by pages. */
  readonly location?: BlockLocation
}

/**
 * Cells of a sheet (`Sales!`, `A2`, `D2`), rows of a file (`row `, `2`, `2`), or times of a recording (``, `00:01:05`,
 * `00:01:09`).
 */
export interface BlockLocation {
  /** What start and end belong to, as it is written before them; empty when there is one of it. */
  readonly within: string
  readonly start: string
  readonly end: string
}

/**
 * A rectangle of a page. `x` and `y` are its left and upper edges, from the left and upper edges of the page as it is
 * shown, turned if the file says so. In points, 72 to the inch; for pictures in pixels.
 */
export interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** A line of the text, or a row of a table, and where its page shows it. */
export interface PlacedLine extends Box {
  readonly page: number
  /** UTF-16 offsets into the text. */
  readonly charStart: number
  readonly charEnd: number
}

/** Where the pages show the text. */
export interface Layout {
  /** The sizes of the pages that have lines, in the unit of the lines. */
  readonly pages: readonly { readonly page: number; readonly width: number; readonly height: number }[]
  /** In the order of the text. They do not overlap in it. */
  readonly lines: readonly PlacedLine[]
}

/** What a document can lack. */
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

export interface ParsedDocument {
  readonly mediaType: string
  /**
   * Normalised: NFC, Arabic presentation forms folded to letters, no control characters except line feed and tab, at
   * most two line feeds in a row.
   */
  readonly text: string
  readonly blocks: readonly Block[]
  /** Absent in formats without pages that look the same everywhere. */
  readonly layout?: Layout
  readonly pageCount: number | null
  readonly warnings: readonly {
    readonly code: DocumentWarningCode
    readonly message: string
    readonly pages: readonly number[]
  }[]
  /** The pages without readable text that were left for OCR, in order. The text has nothing of them. */
  readonly unread: readonly number[]
  /** Whether there are files inside, which `unpack` gives. */
  readonly hasFiles: boolean
}

/** A file inside an archive, or an attachment of a message. */
export interface InnerFile {
  /** With its folders, if it has any. */
  readonly name: string
  /** Null if it cannot be unpacked, or is too large. */
  readonly bytes: Uint8Array | null
}

export type ParseFailureCode = 'empty' | 'corrupt' | 'password_required' | 'no_text' | 'unsupported_type' | 'limit_exceeded' | 'timeout'

/** A file that is too large to be held whole. */
export interface StreamedFile {
  readonly sizeBytes: number
  /** Its two ends, and how much was left out between them. */
  readonly sample: { readonly bytes: Uint8Array; readonly cutBytes: number }
  /** Gives all bytes in order, each time from the beginning. */
  stream(): AsyncIterable<Uint8Array>
}

/** A final verdict on the file: parsing it again gives the same. */
export class ParseFailure extends Error {
  readonly code: ParseFailureCode
  constructor(code: ParseFailureCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ParseFailure'
    this.code = code
  }
}

export interface ParseOptions {
  /** Whether pages that are pictures, and pictures, are left in `unread`. By default they are warned about or refused. */
  readonly defersOcr?: boolean
  /** Is told how many pages of a PDF have been read: 0 first, all last, and in between not every one. */
  readonly onPages?: (done: number, total: number) => void
}

/**
 * Extracts text and structure from untrusted bytes, in a separate process with limits of time, memory and decompressed
 * size.
 */
export interface DocumentParser extends AsyncDisposable {
  /**
   * Gives the media type, from the bytes and, for kinds of text, from the extension: `application/pdf`;
   * `application/octet-stream` when unknown. `cutBytes` of a large file are left out between its two ends.
   */
  sniff(bytes: Uint8Array, fileName: string, cutBytes?: number): string
  /**
   * @throws {ParseFailure} the file cannot be parsed
   * @throws {Error} the parser process itself could not run; try again later
   */
  parse(file: Uint8Array | StreamedFile, fileName: string, signal: AbortSignal, options?: ParseOptions): Promise<ParsedDocument>
  /**
   * Yields the files inside a file that `parse` has read, one at a time, in their order.
   * @throws {ParseFailure} the file cannot be unpacked
   * @throws {Error} the parser process itself could not run; try again later
   */
  unpack(file: Uint8Array | StreamedFile, mediaType: string, signal: AbortSignal): AsyncIterable<InnerFile>
}
