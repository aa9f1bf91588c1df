import { DOC, DOCX, ENCRYPTED_OFFICE, EPUB, MSG, ODP, ODS, ODT, PDF, PPTX, RTF, UNKNOWN, XLSX } from '../../domain/media-types.ts'
import { looksBinary } from './decode-text.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import { sniffText } from './sniff-text.ts'
import { readZipDirectory } from './zip.ts'

/** Bytes looked at to tell text from binary. */
const HEAD_BYTES = 64 * 1024

/**
 * Readers accept this much before `%PDF-` (Adobe's implementation note), which is only believed of a file called .pdf.
 */
const PDF_HEADER_WITHIN = 1024

/** Archives by a part that only they have. */
const OFFICE_PARTS: readonly (readonly [part: RegExp, mediaType: string])[] = [
  [/^word\/document\d*\.xml$/, DOCX],
  [/^xl\/workbook\d*\.xml$/, XLSX],
  [/^ppt\/presentation\d*\.xml$/, PPTX],
  [/^META-INF\/container\.xml$/, EPUB],
]

/** OLE files by an entry of their directory. A message may hold any of the others. */
const OLE_ENTRIES: readonly (readonly [entry: string, mediaType: string])[] = [
  ['__properties_version1.0', MSG],
  ['EncryptedPackage', ENCRYPTED_OFFICE],
  ['WordDocument', DOC],
]

/** Archives by what their first entry, `mimetype`, says; templates say more behind it. */
const DECLARED: readonly string[] = [ODT, ODS, ODP, EPUB]

/** Sound by its first bytes: what transcriptions take. */
const SOUND: readonly (readonly [magic: RegExp, mediaType: string])[] = [
  [/^RIFF[\s\S]{4}WAVE/, 'audio/wav'],
  [/^fLaC/, 'audio/flac'],
  [/^OggS/, 'audio/ogg'],
  [/^(?:ID3|\xff[\xe2-\xe7\xf2-\xf7\xfa-\xfb])/, 'audio/mpeg'],
  [/^[\s\S]{4}ftyp/, 'audio/mp4'],
  [/^\x1aE\xdf\xa3/, 'audio/webm'],
]

/** What a damaged archive is taken for, so that its reader can say what is wrong with it. */
const ARCHIVE_KINDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    docx: DOCX,
    xlsx: XLSX,
    pptx: PPTX,
    odt: ODT,
    ods: ODS,
    odp: ODP,
    epub: EPUB,
  }),
)

/**
 * The media type by the bytes and, between kinds of text, by the extension. Bounded: reads the head and an archive's
 * directory.
 */
export function sniffMediaType(bytes: Uint8Array, fileName: string): string {
  const extension = /\.([^.]+)$/.exec(fileName)?.[1]?.toLowerCase() ?? ''
  const head = bytes.subarray(0, HEAD_BYTES)
  if (startsWith(head, '%PDF-')) return PDF
  if (startsWith(head, '{\\rtf')) return RTF
  if (startsWith(head, '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1')) return oleType(bytes)
  if (startsWith(head, 'PK\x03\x04') || startsWith(head, 'PK\x05\x06')) return archiveType(bytes, extension)
  if (extension === 'pdf' && latin1(head.subarray(0, PDF_HEADER_WITHIN)).includes('%PDF-')) return PDF
  const [, sound] = SOUND.find(([magic]) => magic.test(latin1(head.subarray(0, 16)))) ?? []
  if (sound) return sound
  if (looksBinary(head)) return UNKNOWN
  return sniffText(head, extension)
}

/** OLE files hold messages, old Office documents, and new ones that are encrypted ([MS-OFFCRYPTO] 2.3.4.4). */
function oleType(bytes: Uint8Array): string {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const [, found] = OLE_ENTRIES.find(([entry]) => all.includes(Buffer.from(entry, 'utf16le'))) ?? []
  return found ?? UNKNOWN
}

function archiveType(bytes: Uint8Array, extension: string): string {
  const names = namesIn(bytes)
  if (!names) return ARCHIVE_KINDS.get(extension) ?? UNKNOWN
  const declared = /^mimetype([\w./+-]{1,100})/.exec(latin1(bytes.subarray(30, 140)))?.[1] ?? ''
  const [, office] = OFFICE_PARTS.find(([part]) => names.some((name) => part.test(name))) ?? []
  return DECLARED.find((mediaType) => declared.startsWith(mediaType)) ?? office ?? UNKNOWN
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
