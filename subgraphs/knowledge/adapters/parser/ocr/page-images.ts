import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { PDF } from '../../../domain/media-types.ts'
import type { PageImage } from './page-reader.ts'
import { listTiffPages, withFirstPage } from './tiff-pages.ts'

/** Finds more words than 200, Arabic ones above all: see `docs/measurements.md`. */
const DPI = 300
const POINTS_PER_INCH = 72
/** A page of A3 at 280 dpi. Larger pages are drawn smaller. A pixel of a drawn page takes one byte. */
const MAX_DRAWN_PIXELS = 16_000_000
/** Exif is at the beginning of a JPEG, and in a chunk of its own in a WebP. */
const EXIF_BYTES = 64 * 1024
/** RIFF, its size and WEBP; then chunks, each with its name and size before it. */
const WEBP_HEAD_BYTES = 12
const CHUNK_HEAD_BYTES = 8
/** The tag of the orientation (0x0112) as a 16-bit number, in both byte orders. */
const ORIENTATION = /\x01\x12\x00\x03\x00\x00\x00\x01\x00([\x01-\x08])|\x12\x01\x03\x00\x01\x00\x00\x00([\x01-\x08])\x00/

/** Gives the picture of a page, from 1. */
type PageImages = (page: number) => Promise<PageImage>

/** Opens a file whose pages are to be recognised. */
export async function openPageImages(bytes: Uint8Array, mediaType: string): Promise<PageImages> {
  if (mediaType === PDF) return openDrawnPages(bytes)
  if (mediaType !== 'image/tiff') return async () => ({ bytes, scale: 1, orientation: readOrientation(bytes) })
  const pages = listTiffPages(bytes)
  return async (page) => ({ bytes: withFirstPage(bytes, pages[page - 1]!), scale: 1, orientation: 1 })
}

/** Draws the pages of a PDF with PDFium. */
async function openDrawnPages(bytes: Uint8Array): Promise<PageImages> {
  const { PDFiumLibrary } = await importPdfium()
  const wasm = readFileSync(fileURLToPath(import.meta.resolve('@hyzyla/pdfium/pdfium.wasm')))
  const wasmBinary = Uint8Array.from(wasm).buffer
  const library = await asWorker(() => PDFiumLibrary.init({ wasmBinary }))
  const document = await library.loadDocument(bytes)
  return async (number) => {
    const page = document.getPage(number - 1)
    const { originalWidth, originalHeight } = page.getOriginalSize()
    const fitting = Math.sqrt(MAX_DRAWN_PIXELS / (originalWidth * originalHeight))
    const scale = Math.min(DPI / POINTS_PER_INCH, fitting)
    const { width, height, data } = await page.render({ scale, render: 'bitmap', colorSpace: 'Gray' })
    const header = Buffer.from(`P5\n${width} ${height}\n255\n`)
    return { bytes: Buffer.concat([header, data]), dpi: Math.round(scale * POINTS_PER_INCH), scale, orientation: 1 }
  }
}

function importPdfium() {
  return import('@hyzyla/pdfium/dist/index.esm.browser.js')
}

/** PDFium's build for browsers only looks whether it is in one. It gets its code from here and asks for nothing. */
async function asWorker<T>(open: () => Promise<T>): Promise<T> {
  Object.defineProperty(globalThis, 'WorkerGlobalScope', { value: class {}, configurable: true })
  try {
    return await open()
  } finally {
    Reflect.deleteProperty(globalThis, 'WorkerGlobalScope')
  }
}

/** Photographs lie on their side, and Exif says which. */
function readOrientation(bytes: Uint8Array): number {
  const from = findExif(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  const [, big, little] = ORIENTATION.exec(Buffer.from(bytes.subarray(from, from + EXIF_BYTES)).toString('latin1')) ?? []
  return (big ?? little ?? '\x01').charCodeAt(0)
}

/** Returns where to look for Exif: the chunk of a WebP, which may be its last, or the beginning of any other file. */
function findExif(bytes: Buffer): number {
  if (bytes.toString('latin1', 0, 4) !== 'RIFF') return 0
  for (let at = WEBP_HEAD_BYTES; at + CHUNK_HEAD_BYTES <= bytes.length; ) {
    if (bytes.toString('latin1', at, at + 4) === 'EXIF') return at
    const size = bytes.readUInt32LE(at + 4)
    at += CHUNK_HEAD_BYTES + size + (size % 2)
  }
  return bytes.length
}
