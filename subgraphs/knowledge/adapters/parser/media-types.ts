export const PDF = 'application/pdf'
export const DOCX = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'
export const XLSX = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'
export const PPTX = 'application/vnd.openxmlformats-officedocument.presentationml.presentation'
export const ODT = 'application/vnd.oasis.opendocument.text'
export const EPUB = 'application/epub+zip'
export const ZIP = 'application/zip'
export const RTF = 'application/rtf'
/** OLE compound files: old Office documents, and new ones with a password. */
export const OLE = 'application/x-ole-storage'
export const TEXT = 'text/plain'
export const MARKDOWN = 'text/markdown'
export const HTML = 'text/html'
export const CSV = 'text/csv'
export const JSON_TEXT = 'application/json'
export const UNKNOWN = 'application/octet-stream'

/** What there is a reader for. */
export const READABLE: ReadonlySet<string> = new Set([PDF, DOCX, TEXT, MARKDOWN, HTML])
