import { DOC, DOCX, ENCRYPTED_OFFICE, EPUB, MSG, ODP, ODS, ODT, PDF, PPTX, RTF, UNKNOWN, XLSX, ZIP } from '../../domain/media-types.ts'
import { looksBinary } from './decode-text.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import { sniffText } from './sniff-text.ts'
import { readZipDirectory } from './zip.ts'

/** The number of bytes that tell text from binary. */
const HEAD_BYTES = 64 * 1024

/**
 * PDF readers accept this many bytes before `%PDF-` (Adobe's implementation notes). They are accepted here only if the
 * file's extension is .pdf.
 */
const PDF_HEADER_WITHIN = 1024

/** Archive formats by an entry that only they have. */
const OFFICE_PARTS: readonly (readonly [part: RegExp, mediaType: string])[] = [
  [/^word\/document\d*\.xml$/, DOCX],
  [/^xl\/workbook\d*\.xml$/, XLSX],
  [/^ppt\/presentation\d*\.xml$/, PPTX],
  [/^META-INF\/container\.xml$/, EPUB],
]

/** OLE formats by an entry of their directory. A message comes first, because it may contain all other entries. */
const OLE_ENTRIES: readonly (readonly [entry: string, mediaType: string])[] = [
  ['__properties_version1.0', MSG],
  ['EncryptedPackage', ENCRYPTED_OFFICE],
  ['WordDocument', DOC],
]

/** OLE formats of large files, by extension. */
const OLE_KINDS: ReadonlyMap<string, string> = new Map(Object.entries({ doc: DOC, msg: MSG }))

/** Archive formats by the content of their first entry, `mimetype`. Templates append a suffix to it. */
const DECLARED: readonly string[] = [ODT, ODS, ODP, EPUB]

/** Audio formats that the service can transcribe, by their first bytes. */
const AUDIO: readonly (readonly [magic: RegExp, mediaType: string])[] = [
  [/^RIFF[\s\S]{4}WAVE/, 'audio/wav'],
  [/^fLaC/, 'audio/flac'],
  [/^OggS/, 'audio/ogg'],
  [/^(?:ID3|\xff[\xe2-\xe7\xf2-\xf7\xfa-\xfb])/, 'audio/mpeg'],
  [/^[\s\S]{4}ftyp/, 'audio/mp4'],
  [/^\x1aE\xdf\xa3/, 'audio/webm'],
]

/** Pictures by their first bytes. */
const IMAGES: readonly (readonly [magic: RegExp, mediaType: string])[] = [
  [/^\x89PNG\r\n\x1a\n/, 'image/png'],
  [/^\xff\xd8\xff/, 'image/jpeg'],
  [/^(?:II\*\0|MM\0\*)/, 'image/tiff'],
  [/^RIFF[\s\S]{4}WEBP/, 'image/webp'],
]

/** Media types of archives with a damaged directory, by extension. The format's reader then reports the damage. */
const ARCHIVE_KINDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    docx: DOCX,
    xlsx: XLSX,
    pptx: PPTX,
    odt: ODT,
    ods: ODS,
    odp: ODP,
    epub: EPUB,
    zip: ZIP,
  }),
)

/**
 * Returns the media type of a file. It looks at the bytes and, for text, at the extension. It reads only the beginning
 * of the file, an archive's directory, and the names in an OLE file.
 * @param cutBytes what a large file lacks between its two ends
 */
export function sniffMediaType(bytes: Uint8Array, fileName: string, cutBytes = 0): string {
  const extension = /\.([^.]+)$/.exec(fileName)?.[1]?.toLowerCase() ?? ''
  const head = bytes.subarray(0, HEAD_BYTES)
  if (startsWith(head, '%PDF-')) return PDF
  if (startsWith(head, '{\\rtf')) return RTF
  if (startsWith(head, '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1')) return oleType(bytes, cutBytes > 0 ? extension : '')
  if (startsWith(head, 'PK\x03\x04') || startsWith(head, 'PK\x05\x06')) return archiveType(bytes, extension, cutBytes)
  if (extension === 'pdf' && latin1(head.subarray(0, PDF_HEADER_WITHIN)).includes('%PDF-')) return PDF
  const start = latin1(head.subarray(0, 16))
  const [, shown] = [...AUDIO, ...IMAGES].find(([magic]) => magic.test(start)) ?? []
  if (shown) return shown
  if (looksBinary(head)) return UNKNOWN
  return sniffText(head, extension)
}

/**
 * Recognizes OLE files: Outlook messages, Word 97 documents, and encrypted Office documents ([MS-OFFCRYPTO] 2.3.4.4).
 */
function oleType(bytes: Uint8Array, extension: string): string {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const [, found] = OLE_ENTRIES.find(([entry]) => all.includes(Buffer.from(entry, 'utf16le'))) ?? []
  // The directory may lie in what was left out.
  return found ?? OLE_KINDS.get(extension) ?? UNKNOWN
}

function archiveType(bytes: Uint8Array, extension: string, cutBytes: number): string {
  const names = namesIn(bytes, cutBytes)
  if (!names) return ARCHIVE_KINDS.get(extension) ?? UNKNOWN
  const declared = /^mimetype([\w./+-]{1,100})/.exec(latin1(bytes.subarray(30, 140)))?.[1] ?? ''
  const [, office] = OFFICE_PARTS.find(([part]) => names.some((name) => part.test(name))) ?? []
  return DECLARED.find((mediaType) => declared.startsWith(mediaType)) ?? office ?? ZIP
}

function namesIn(bytes: Uint8Array, cutBytes: number): readonly string[] | undefined {
  try {
    return readZipDirectory(bytes, DEFAULT_LIMITS.maxArchiveEntries, cutBytes).map(({ name }) => name)
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
