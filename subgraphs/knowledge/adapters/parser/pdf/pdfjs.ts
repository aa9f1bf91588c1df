import type { PDFDocumentProxy } from 'pdfjs-dist/legacy/build/pdf.mjs'
import { ParseFailure } from '../../../ports/document-parser.ts'
import './worker-glyphs.ts'

/** The fields that `worker-glyphs.ts` adds to the text items of pdf.js. */
export interface GlyphItem {
  readonly glyphs?: readonly string[]
  readonly transform: readonly number[]
  readonly width: number
  readonly fontName: string
}
export interface GlyphStyle {
  readonly name?: string
}

/**
 * Opens a PDF with pdf-parse and the version of pdf.js that it contains.
 * @throws {ParseFailure} `password_required` if the PDF is encrypted with a password.
 * @throws {ParseFailure} `corrupt` if the PDF cannot be opened.
 */
export async function openPdf(bytes: Uint8Array): Promise<PDFDocumentProxy> {
  const { PDFParse } = await importPdfParse()
  const parser = new PDFParse({
    // pdf.js takes ownership of the bytes, so it gets a copy.
    data: new Uint8Array(bytes),
    verbosity: 0,
    useSystemFonts: false,
    useWorkerFetch: false,
    useWasm: false,
    cMapUrl: cMapFolder(),
    cMapPacked: true,
  })
  try {
    // The public interface of pdf-parse gives joined text only, so this calls a method that its types hide.
    return await (parser as unknown as { load(): Promise<PDFDocumentProxy> }).load()
  } catch (error) {
    if (error instanceof Error && error.name === 'PasswordException')
      throw new ParseFailure('password_required', 'The PDF needs a password to open. Upload a copy without one.')
    throw new ParseFailure('corrupt', 'The PDF cannot be opened: it is damaged or cut off. Upload it again.')
  }
}

/**
 * Imports pdf-parse. On loading, pdf.js looks for a browser's drawing classes and then for a native package, which a
 * child may not load. Text needs neither, so empty classes take their place.
 */
async function importPdfParse() {
  for (const name of ['DOMMatrix', 'ImageData', 'Path2D']) {
    if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value: class {} })
  }
  return import('pdf-parse')
}

/**
 * Returns the folder of character code tables. Fonts that name a table instead of containing one need it, mostly CJK
 * fonts.
 */
function cMapFolder(): string {
  return new URL('../../cmaps/', import.meta.resolve('pdfjs-dist/legacy/build/pdf.mjs')).pathname
}
