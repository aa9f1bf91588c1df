export const PDF = 'application/pdf'
export const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
export const XLSX = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'
export const ODS = 'application/vnd.oasis.opendocument.spreadsheet'
export const PPTX = 'application/vnd.openxmlformats-officedocument.presentationml.presentation'
export const DOC = 'application/msword'
export const ODT = 'application/vnd.oasis.opendocument.text'
export const ODP = 'application/vnd.oasis.opendocument.presentation'
export const EPUB = 'application/epub+zip'
export const RTF = 'application/rtf'
export const EML = 'message/rfc822'
export const MBOX = 'application/mbox'
export const MSG = 'application/vnd.ms-outlook'
export const MHT = 'multipart/related'
export const ZIP = 'application/zip'
export const CSV = 'text/csv'
export const TSV = 'text/tab-separated-values'
export const JSON_TEXT = 'application/json'
export const XML = 'application/xml'
export const SRT = 'application/x-subrip'
export const VTT = 'text/vtt'
export const SOURCE = 'text/x-source'
export const TEXT = 'text/plain'
export const MARKDOWN = 'text/markdown'
export const HTML = 'text/html'
/** An Office document that opens with a password: what it is only the password tells. */
export const ENCRYPTED_OFFICE = 'application/x-encrypted-office'
export const UNKNOWN = 'application/octet-stream'

/** What there is a reader for, by media type, as people call it. Everything that lists the formats lists these. */
const FORMATS: Readonly<Record<string, string>> = {
  [PDF]: 'PDF',
  [DOCX]: 'DOCX',
  [DOC]: 'DOC',
  [ODT]: 'ODT',
  [RTF]: 'RTF',
  [XLSX]: 'XLSX',
  [ODS]: 'ODS',
  [CSV]: 'CSV',
  [TSV]: 'TSV',
  [PPTX]: 'PPTX',
  [ODP]: 'ODP',
  [EPUB]: 'EPUB',
  [HTML]: 'HTML',
  [MHT]: 'MHT',
  [MARKDOWN]: 'Markdown',
  [TEXT]: 'plain text',
  [SOURCE]: 'source code',
  [JSON_TEXT]: 'JSON and JSON Lines',
  [XML]: 'XML',
  [EML]: 'EML',
  [MBOX]: 'MBOX',
  [MSG]: 'MSG',
  [SRT]: 'SRT',
  [VTT]: 'VTT',
  [ZIP]: 'ZIP',
}

/** Pictures, which become documents where a collection uses OCR. */
const IMAGE_FORMATS: Readonly<Record<string, string>> = {
  'image/png': 'PNG',
  'image/jpeg': 'JPEG',
  'image/tiff': 'TIFF',
  'image/webp': 'WebP',
}
export const IMAGES: readonly string[] = Object.keys(IMAGE_FORMATS)
export const IMAGE_LIST = Object.values(IMAGE_FORMATS).join(', ')

/** Their names, as errors and documentation list them. */
export const FORMAT_LIST = Object.values(FORMATS).join(', ')

/** Their media types. */
export const READABLE: readonly string[] = Object.keys(FORMATS)

export function isReadable(mediaType: string): boolean {
  return Object.hasOwn(FORMATS, mediaType)
}

export function isImage(mediaType: string): boolean {
  return Object.hasOwn(IMAGE_FORMATS, mediaType)
}

/** Formats whose file may be far larger than their text: archives, pages with pictures, OLE files. */
const BINARY: ReadonlySet<string> = new Set([PDF, DOCX, DOC, ODT, XLSX, ODS, PPTX, ODP, EPUB, MSG, ZIP, ...IMAGES])

export function isBinaryFormat(mediaType: string): boolean {
  return BINARY.has(mediaType)
}

/** The formats of sound, as people call them. */
export const AUDIO_LIST = 'FLAC, MP3, MP4, M4A, Ogg, WAV, WebM'
/** The largest file of sound that speech models take: the limit of OpenAI's transcriptions, which inference has too. */
export const MAX_AUDIO_BYTES = 25 * 1024 * 1024

/** Sound, which a speech model transcribes: for documents if their collection names one, and in workflows. */
export function isAudio(mediaType: string): boolean {
  return mediaType.startsWith('audio/')
}
