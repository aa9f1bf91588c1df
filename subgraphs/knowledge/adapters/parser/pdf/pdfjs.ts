import type { PDFDocumentProxy } from 'pdfjs-dist/legacy/build/pdf.mjs'
import { ParseFailure } from '../../../ports/document-parser.ts'

export type Pdfjs = typeof import('pdfjs-dist/legacy/build/pdf.mjs')

/** A title of the outline. */
export interface OutlineItem {
  readonly title: unknown
  readonly items: readonly OutlineItem[]
}

export interface Pdf {
  readonly pdfjs: Pdfjs
  readonly document: PDFDocumentProxy
  readonly outline: readonly OutlineItem[]
}

/**
 * Opens a PDF with pdf-parse, which reads the outline, and with pdf.js, which reads the glyphs of its pages.
 * @throws {ParseFailure} `password_required` if the PDF is encrypted with a password.
 * @throws {ParseFailure} `corrupt` if the PDF cannot be opened.
 */
export async function openPdf(bytes: Uint8Array): Promise<Pdf> {
  const { PDFParse, PasswordException } = await importPdfParse()
  // pdf.js takes ownership of the bytes, so each gets a copy.
  const parser = new PDFParse({ ...OPTIONS, data: new Uint8Array(bytes) })
  const pdfjs = await import('pdfjs-dist/legacy/build/pdf.mjs')
  try {
    // If the outline or the metadata is corrupted, the pages are still readable.
    const info = await parser.getInfo().catch((error: unknown) => {
      if (error instanceof PasswordException) throw error
      return undefined
    })
    await parser.destroy()
    const document = await pdfjs.getDocument({ ...OPTIONS, data: new Uint8Array(bytes) }).promise
    return { pdfjs, document, outline: (info?.outline ?? []) as readonly OutlineItem[] }
  } catch (error) {
    if (error instanceof PasswordException)
      throw new ParseFailure('password_required', 'The PDF needs a password to open. Upload a copy without one.')
    throw new ParseFailure('corrupt', 'The PDF cannot be opened: it is corrupted or cut off. Upload it again.')
  }
}

/** Text extraction needs no images. */
const OPTIONS = {
  verbosity: 0,
  maxImageSize: 0,
  isEvalSupported: false,
  useSystemFonts: false,
  useWorkerFetch: false,
  useWasm: false,
  // The folder of character code tables. Fonts that name a table instead of embedding one need it, mostly CJK fonts.
  cMapUrl: new URL('cmaps/', import.meta.resolve('pdfjs-dist/package.json')).pathname,
  cMapPacked: true,
}

/**
 * Imports pdf-parse. On loading, pdf.js looks for a browser's drawing classes and then for a native package, which a
 * child may not load. Text extraction needs neither, so empty classes replace them.
 */
async function importPdfParse() {
  for (const name of ['DOMMatrix', 'ImageData', 'Path2D']) {
    if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value: class {} })
  }
  return import('pdf-parse')
}
