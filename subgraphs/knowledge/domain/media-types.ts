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
/** A password-protected Office document. Its format is unknown without the password. */
export const ENCRYPTED_OFFICE = 'application/x-encrypted-office'
export const UNKNOWN = 'application/octet-stream'

/** Names of the readable formats by media type. All lists of formats are derived from this one. */
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

/** Images, which become documents in collections that use OCR. */
const IMAGE_FORMATS: Readonly<Record<string, string>> = {
  'image/png': 'PNG',
  'image/jpeg': 'JPEG',
  'image/tiff': 'TIFF',
  'image/webp': 'WebP',
}
export const IMAGES: readonly string[] = Object.keys(IMAGE_FORMATS)
export const IMAGE_LIST = Object.values(IMAGE_FORMATS).join(', ')

/** The format names for errors and documentation. */
export const FORMAT_LIST = Object.values(FORMATS).join(', ')

export const READABLE: readonly string[] = Object.keys(FORMATS)

/** Whether a reader extracts text from this format. */
export function isReadable(mediaType: string): boolean {
  return Object.hasOwn(FORMATS, mediaType)
}

export function isImage(mediaType: string): boolean {
  return Object.hasOwn(IMAGE_FORMATS, mediaType)
}

/** Formats whose file may be far larger than its text: archives, pages with images, OLE files. */
const BINARY: ReadonlySet<string> = new Set([PDF, DOCX, DOC, ODT, XLSX, ODS, PPTX, ODP, EPUB, MSG, ZIP, ...IMAGES])

export function isBinaryFormat(mediaType: string): boolean {
  return BINARY.has(mediaType)
}

/** The audio formats for errors and documentation. */
export const AUDIO_LIST = 'FLAC, MP3, MP4, M4A, Ogg, WAV, WebM'
/**
 * The largest audio file that speech models accept. It is the limit of OpenAI's transcriptions, and inference has the
 * same limit.
 */
export const MAX_AUDIO_BYTES = 25 * 1024 * 1024

/**
 * Returns whether the media type is audio. A speech model transcribes audio in workflows, and for documents if their
 * collection names a model.
 */
export function isAudio(mediaType: string): boolean {
  return mediaType.startsWith('audio/')
}
