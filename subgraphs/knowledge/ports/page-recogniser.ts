import type { Box, StreamedFile } from './document-parser.ts'

/** What OCR read on a page. */
export interface RecognisedPage {
  /** From 1. */
  readonly page: number
  /** How sure it is of the letters, 0 to 100. Null if the page took too much time or memory, or cannot be drawn. */
  readonly confidence: number | null
  /** The page took too much processor time. Absent: it did not. */
  readonly isOutOfTime?: true
  /** The page took too much memory. Absent: it did not. */
  readonly isOutOfMemory?: true
  /** Normalised as the text of a parsed document. Empty if the page has no text, or none that makes words. */
  readonly paragraphs: readonly string[]
  /** Where the page shows them. Absent in what earlier versions kept, and where nothing was read. */
  readonly layout?: RecognisedLayout
}

export interface RecognisedLayout {
  readonly width: number
  readonly height: number
  /** In the order of the text. Offsets into the paragraphs, joined with two line feeds. */
  readonly lines: readonly (Box & { readonly charStart: number; readonly charEnd: number })[]
}

/** Reads text from pictures of pages, in Arabic and English. It runs as confined as the document parser does. */
export interface PageRecogniser extends AsyncDisposable {
  /**
   * Yields all of the pages, in their order. A page takes seconds, and at most 20 s of processor time. Organizations are
   * served round robin, one page at a time.
   * @param input.mediaType of a PDF or a picture, as the parser gave it
   * @throws {Error} the process could not run; try again later
   */
  recognise(
    input: {
      readonly organizationId: string
      readonly file: Uint8Array | StreamedFile
      readonly mediaType: string
      readonly pages: readonly number[]
    },
    signal: AbortSignal,
  ): AsyncIterable<RecognisedPage>
}
