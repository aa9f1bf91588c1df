/** A run of the text with one role. Blocks are in order, do not overlap, and leave out only white space between them. */
export interface Block {
  readonly kind: 'heading' | 'paragraph' | 'list_item' | 'table_row' | 'code'
  /** UTF-16 offsets into `text`. */
  readonly charStart: number
  readonly charEnd: number
  /** 1 to 6, of headings only. */
  readonly level?: number
  /** One-based page where the block begins, in formats with pages; blocks are cut at page ends. */
  readonly page?: number
  /** Text of the header row, of table rows below one. */
  readonly tableHeader?: string
  /** Where a reader finds it in formats that count otherwise than by pages. */
  readonly location?: BlockLocation
}

/** Cells of a sheet (`Sales!`, `A2`, `D2`), rows of a file (`row `, `2`, `2`), or times of a recording (``, `00:01:05`, `00:01:09`). */
export interface BlockLocation {
  /** What start and end belong to, as it is written before them; empty when there is one of it. */
  readonly within: string
  readonly start: string
  readonly end: string
}

export interface ParsedDocument {
  readonly mediaType: string
  /** Normalised: NFC, Arabic presentation forms folded to letters, no control characters but line feed and tab, at most two line feeds in a row. */
  readonly text: string
  readonly blocks: readonly Block[]
  readonly pageCount: number | null
  readonly warnings: readonly {
    readonly code: 'pages_without_text' | 'replaced_characters' | 'structure_lost' | 'attachments_not_read'
    readonly message: string
    readonly pages: readonly number[]
  }[]
}

export type ParseFailureCode = 'empty' | 'corrupt' | 'password_required' | 'no_text' | 'unsupported_type' | 'limit_exceeded' | 'timeout'

/** A verdict on the file: parsing it again gives the same. */
export class ParseFailure extends Error {
  readonly code: ParseFailureCode
  constructor(code: ParseFailureCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ParseFailure'
    this.code = code
  }
}

/** Text and structure of untrusted bytes, in a process of its own with limits of time, memory and inflated size. */
export interface DocumentParser extends AsyncDisposable {
  /** What the bytes are, from the bytes and, between kinds of text, from the extension: `application/pdf`; `application/octet-stream` when unknown. */
  sniff(bytes: Uint8Array, fileName: string): string
  /** @throws {ParseFailure} @throws {Error} the parser process itself could not run: try again later. */
  parse(bytes: Uint8Array, fileName: string, signal: AbortSignal): Promise<ParsedDocument>
}
