import { looksBinary } from './decode-text.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import { CSV, DOCX, EPUB, HTML, JSON_TEXT, MARKDOWN, ODT, OLE, PDF, PPTX, RTF, TEXT, UNKNOWN, XLSX, ZIP } from './media-types.ts'
import { readZipDirectory } from './zip.ts'

/** Bytes looked at to tell text from binary. */
const HEAD_BYTES = 64 * 1024

/** Readers accept this much before `%PDF-` (Adobe's implementation note), which is only believed of a file called .pdf. */
const PDF_HEADER_WITHIN = 1024

const TEXT_KINDS: Readonly<Record<string, string>> = {
  md: MARKDOWN,
  markdown: MARKDOWN,
  html: HTML,
  htm: HTML,
  xhtml: HTML,
  csv: CSV,
  tsv: CSV,
  json: JSON_TEXT,
}

const OFFICE_KINDS: Readonly<Record<string, string>> = { docx: DOCX, xlsx: XLSX, pptx: PPTX, odt: ODT, epub: EPUB }

/** The media type by the bytes and, between kinds of text, by the extension. Bounded: reads the head and an archive's directory. */
export function sniffMediaType(bytes: Uint8Array, fileName: string): string {
  const extension = /\.([^.]+)$/.exec(fileName)?.[1]?.toLowerCase() ?? ''
  const head = bytes.subarray(0, HEAD_BYTES)
  if (startsWith(head, '%PDF-')) return PDF
  if (startsWith(head, '{\\rtf')) return RTF
  if (startsWith(head, '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1')) return OLE
  if (startsWith(head, 'PK\x03\x04') || startsWith(head, 'PK\x05\x06')) return archiveType(bytes, extension)
  if (extension === 'pdf' && latin1(head.subarray(0, PDF_HEADER_WITHIN)).includes('%PDF-')) return PDF
  if (looksBinary(head)) return UNKNOWN
  const kind = TEXT_KINDS[extension]
  if (kind) return kind
  return extension !== 'txt' && /^\s*<(?:!doctype html|html)[\s>]/i.test(latin1(head.subarray(0, 1024))) ? HTML : TEXT
}

/** True for an OLE file that wraps an Office document with a password ([MS-OFFCRYPTO] 2.3.4.4). */
export function isEncryptedOffice(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(Buffer.from('EncryptedPackage', 'utf16le'))
}

function archiveType(bytes: Uint8Array, extension: string): string {
  const names = namesIn(bytes)
  // An archive that is cut off is judged by its reader, which says what is wrong with it.
  if (!names) return OFFICE_KINDS[extension] ?? ZIP
  if (names.some((name) => /^word\/document\d*\.xml$/.test(name))) return DOCX
  if (names.includes('xl/workbook.xml')) return XLSX
  if (names.includes('ppt/presentation.xml')) return PPTX
  const declared = latin1(bytes.subarray(30, 30 + 'mimetype'.length + ODT.length))
  if (declared.startsWith(`mimetype${EPUB}`)) return EPUB
  if (declared === `mimetype${ODT}`) return ODT
  return ZIP
}

function namesIn(bytes: Uint8Array): readonly string[] | undefined {
  try {
    return readZipDirectory(bytes, DEFAULT_LIMITS.maxArchiveEntries).map(({ name }) => name)
  } catch {
    return undefined
  }
}

function startsWith(bytes: Uint8Array, magic: string): boolean {
  return latin1(bytes.subarray(0, magic.length)) === magic
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
