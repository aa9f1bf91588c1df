import * as types from '../../../domain/media-types.ts'
import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from './document-builder.ts'

/** Readers of formats with pages return the number of pages. */
type Reader = (bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits) => unknown

/** Readers are loaded on demand. Loading pdf.js alone takes longer than reading most texts. */
const READERS: Readonly<Record<string, () => Promise<Reader>>> = {
  [types.PDF]: async () => (await import('../pdf/read-pdf.ts')).readPdf,
  [types.DOCX]: async () => (await import('../word/read-docx.ts')).readDocx,
  [types.DOC]: async () => (await import('../word/read-doc.ts')).readDoc,
  [types.ODT]: async () => (await import('../open-document/read-odt.ts')).readOdt,
  [types.RTF]: async () => (await import('../rtf/read-rtf.ts')).readRtf,
  [types.XLSX]: async () => (await import('../sheets/read-xlsx.ts')).readXlsx,
  [types.ODS]: async () => (await import('../open-document/read-ods.ts')).readOds,
  [types.CSV]: async () => (await import('./read-delimited.ts')).readDelimited,
  [types.TSV]: async () => (await import('./read-delimited.ts')).readDelimited,
  [types.PPTX]: async () => (await import('../slides/read-pptx.ts')).readPptx,
  [types.ODP]: async () => (await import('../open-document/read-odp.ts')).readOdp,
  [types.EPUB]: async () => (await import('./read-epub.ts')).readEpub,
  [types.HTML]: async () => (await import('../html/read-html.ts')).readHtml,
  [types.MHT]: async () => (await import('./read-mht.ts')).readMht,
  [types.MARKDOWN]: async () => (await import('./read-markdown.ts')).readMarkdown,
  [types.TEXT]: async () => (await import('./read-text.ts')).readText,
  [types.SOURCE]: async () => (await import('./read-source.ts')).readSource,
  [types.JSON_TEXT]: async () => (await import('./read-json.ts')).readJson,
  [types.XML]: async () => (await import('./read-xml.ts')).readXmlFile,
  [types.EML]: async () => (await import('./read-mail.ts')).readEml,
  [types.MBOX]: async () => (await import('./read-mail.ts')).readMbox,
  [types.MSG]: async () => (await import('./read-msg.ts')).readMsg,
  [types.SRT]: async () => (await import('./read-subtitles.ts')).readSubtitles,
  [types.VTT]: async () => (await import('./read-subtitles.ts')).readSubtitles,
  [types.ZIP]: async () => (await import('./read-zip.ts')).readZip,
  ...Object.fromEntries(types.IMAGES.map((mediaType) => [mediaType, async () => (await import('./read-image.ts')).readImage])),
}

/** Formats that may contain images instead of text. */
const WITH_IMAGES: ReadonlySet<string> = new Set([
  types.PDF,
  types.DOCX,
  types.DOC,
  types.ODT,
  types.RTF,
  types.XLSX,
  types.ODS,
  types.PPTX,
  types.ODP,
  types.EPUB,
])

/**
 * Reads a document of a known type into the builder. Returns its number of pages, or null if the format has no pages.
 * @throws {ParseFailure} `unsupported_type` if there is no reader for the type.
 * @throws {ParseFailure} `no_text` or `empty` if the document has no text.
 * @throws {ParseFailure} the reader's verdict.
 */
export async function readDocument(
  mediaType: string,
  bytes: Uint8Array,
  builder: DocumentBuilder,
  limits: ParserLimits,
): Promise<number | null> {
  const read = await READERS[mediaType]?.()
  if (!read) throw new ParseFailure('unsupported_type', `The service cannot read files of type ${mediaType}.`)
  const pageCount = await read(bytes, builder, limits)
  if (!builder.isEmpty) return typeof pageCount === 'number' ? pageCount : null
  throw WITH_IMAGES.has(mediaType)
    ? new ParseFailure('no_text', 'The document has no text: it shows only images or drawings. Upload a copy with text.')
    : new ParseFailure('empty', 'The file has no text.')
}
