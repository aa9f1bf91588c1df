export const PDF = 'application/pdf'
export const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
export const XLSX = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'
export const ODS = 'application/vnd.oasis.opendocument.spreadsheet'
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
  [XLSX]: 'XLSX',
  [ODS]: 'ODS',
  [HTML]: 'HTML',
  [MARKDOWN]: 'Markdown',
  [TEXT]: 'TXT',
}

/** Their names in one sentence. */
export const FORMAT_LIST = new Intl.ListFormat('en').format([...new Set(Object.values(FORMATS))])

export function isReadable(mediaType: string): boolean {
  return Object.hasOwn(FORMATS, mediaType)
}
