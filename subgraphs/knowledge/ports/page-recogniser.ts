import type { Box, StreamedFile } from './document-parser.ts'

/** The OCR result of a page. */
export interface RecognisedPage {
  /** Counts from 1. */
  readonly page: number
  /** OCR confidence, 0 to 100. Null if the page took too much time or memory, or cannot be rendered. */
  readonly confidence: number | null
  /** True if the page exceeded the limit of processor time. */
  readonly isOutOfTime?: true
  /** True if the page exceeded the memory limit. */
  readonly isOutOfMemory?: true
  /** Normalized like the text of a parsed document. Empty if the page has no text, or none that forms words. */
  readonly paragraphs: readonly string[]
  /**
   * Positions of the text on the page. Absent in results that earlier versions stored, and if no text was recognized.
   */
  readonly layout?: RecognisedLayout
}

/** The size of a page, and the positions of its lines. */
export interface RecognisedLayout {
  readonly width: number
  readonly height: number
  /** In the order of the text. Offsets are into the paragraphs, joined with two line feeds. */
  readonly lines: readonly (Box & { readonly charStart: number; readonly charEnd: number })[]
}

/** Recognizes Arabic and English text in images of pages. It runs in the same sandbox as the document parser. */
export interface PageRecogniser extends AsyncDisposable {
  /**
   * Yields all requested pages in order. A page takes seconds, and at most 20 s of processor time. Organizations are
   * served round robin, one page at a time.
   * @param input.mediaType of a PDF or an image, as the parser returned it
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
