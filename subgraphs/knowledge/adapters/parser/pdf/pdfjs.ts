import type { PDFDocumentProxy } from 'pdfjs-dist/legacy/build/pdf.mjs'
import { ParseFailure } from '../../../ports/document-parser.ts'
import './worker-glyphs.ts'

/** What pdf.js gives of a page beyond its own types: see `worker-glyphs.ts`. */
export interface GlyphItem {
  readonly glyphs?: readonly string[]
  readonly transform: readonly number[]
  readonly width: number
  readonly fontName: string
}
export interface GlyphStyle {
  readonly name?: string
}

/** Opens a PDF by pdf-parse, with the pdf.js that it brings. @throws {ParseFailure} */
export async function openPdf(bytes: Uint8Array): Promise<PDFDocumentProxy> {
  const { PDFParse } = await importPdfParse()
  const parser = new PDFParse({
    // pdf.js takes ownership of the bytes, so it gets a copy of its own.
    data: new Uint8Array(bytes),
    verbosity: 0,
    useSystemFonts: false,
    useWorkerFetch: false,
    useWasm: false,
    cMapUrl: cMapFolder(),
    cMapPacked: true,
  })
  try {
    // pdf-parse keeps the open document to itself, and gives text that is joined already.
    return await (parser as unknown as { load(): Promise<PDFDocumentProxy> }).load()
  } catch (error) {
    if (error instanceof Error && error.name === 'PasswordException')
      throw new ParseFailure('password_required', 'The PDF opens with a password only.')
    throw new ParseFailure('corrupt', 'The PDF cannot be opened: it is damaged or cut off.')
  }
}

/**
 * pdf.js wants a browser's drawing classes when it loads, and finds them in a native package that a child may not load.
 * Text needs none of them, so empty ones stand in.
 */
async function importPdfParse() {
  for (const name of ['DOMMatrix', 'ImageData', 'Path2D']) {
    if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value: class {} })
  }
  return import('pdf-parse')
}

/** Tables of character codes for fonts that only name theirs, CJK ones above all. */
function cMapFolder(): string {
  return new URL('../../cmaps/', import.meta.resolve('pdfjs-dist/legacy/build/pdf.mjs')).pathname
}
