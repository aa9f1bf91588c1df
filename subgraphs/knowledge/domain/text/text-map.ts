import type { ParsedDocument } from '../../ports/document-parser.ts'

/** Maps pages and character offsets of a document's text to bytes. */
export interface TextMap {
  /** The offset of each page's first character, in UTF-16 code units. Null in formats without pages. */
  readonly pages: readonly number[] | null
  /** Length of the text in UTF-16 code units. */
  readonly length: number
  /** Pairs of corresponding offsets into the text and into its UTF-8 bytes, ascending. The first is `[0, 0]`. */
  readonly marks: readonly (readonly [chars: number, bytes: number])[]
}

/** Characters between two marks. Reading a part of the text reads at most this many extra characters at each end. */
export const MARK_CHARS = 65_536

/** Computes the map of a document's text, so that a part can be read without the rest. */
export function buildTextMap({ text, blocks, pageCount }: Pick<ParsedDocument, 'text' | 'blocks' | 'pageCount'>): TextMap {
  const marks: [number, number][] = [[0, 0]]
  for (let at = MARK_CHARS; at < text.length; at += MARK_CHARS) {
    const [chars, bytes] = marks.at(-1)!
    const next = startsInPair(text, at) ? at + 1 : at
    marks.push([next, bytes + Buffer.byteLength(text.slice(chars, next))])
  }
  return { pages: pageCount === null ? null : findPageStarts(text, blocks, pageCount), length: text.length, marks }
}

/** A page without text starts where the next one starts. Text before the first block belongs to the first page. */
function findPageStarts(text: string, blocks: ParsedDocument['blocks'], pageCount: number): readonly number[] {
  const starts = Array<number>(pageCount).fill(text.length)
  for (const { page, charStart } of blocks) {
    if (page !== undefined && page <= pageCount) starts[page - 1] = Math.min(starts[page - 1]!, charStart)
  }
  for (let i = pageCount - 2; i >= 0; i--) starts[i] = Math.min(starts[i]!, starts[i + 1]!)
  if (pageCount > 0) starts[0] = 0
  return starts
}

/** Whether `at` is inside a surrogate pair. */
export function startsInPair(text: string, at: number): boolean {
  return at > 0 && at < text.length && /[\udc00-\udfff]/.test(text[at]!) && /[\ud800-\udbff]/.test(text[at - 1]!)
}
