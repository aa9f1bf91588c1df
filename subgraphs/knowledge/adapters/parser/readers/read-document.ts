import { DOCX, HTML, MARKDOWN, ODS, PDF, TEXT, XLSX } from '../../../domain/media-types.ts'
import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from './document-builder.ts'

/** Readers of formats with pages give their number. */
type Reader = (bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits) => unknown

/** Readers are loaded when they are needed: pdf.js alone takes longer to load than most texts take to read. */
const READERS: Readonly<Record<string, () => Promise<Reader>>> = {
  [PDF]: async () => (await import('./read-pdf.ts')).readPdf,
  [DOCX]: async () => (await import('./read-docx.ts')).readDocx,
  [XLSX]: async () => (await import('../sheets/read-xlsx.ts')).readXlsx,
  [ODS]: async () => (await import('../open-document/read-ods.ts')).readOds,
  [HTML]: async () => (await import('./read-html.ts')).readHtml,
  [MARKDOWN]: async () => (await import('./read-markdown.ts')).readMarkdown,
  [TEXT]: async () => (await import('./read-text.ts')).readText,
}

/** Text that is empty is an empty file; other formats may hold pictures instead. */
const PLAIN: ReadonlySet<string> = new Set([TEXT, MARKDOWN, HTML])

/** Reads a document of a known type into the builder, and gives the number of its pages. @throws {ParseFailure} */
export async function readDocument(
  mediaType: string,
  bytes: Uint8Array,
  builder: DocumentBuilder,
  limits: ParserLimits,
): Promise<number | null> {
  const read = await READERS[mediaType]?.()
  if (!read) throw new ParseFailure('unsupported_type', `Files of type ${mediaType} are not read.`)
  const pageCount = await read(bytes, builder, limits)
  if (!builder.isEmpty) return typeof pageCount === 'number' ? pageCount : null
  throw PLAIN.has(mediaType)
    ? new ParseFailure('empty', 'The file has no text.')
    : new ParseFailure('no_text', 'The document has no text: what it shows are pictures or drawings, which are not read.')
}
