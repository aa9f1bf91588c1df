import { crc32, deflateSync } from 'node:zlib'
import { PDFiumLibrary } from '@hyzyla/pdfium'
import PDFDocument from 'pdfkit'

/** A picture in shades of grey, a byte for each pixel. */
export interface Grey {
  readonly width: number
  readonly height: number
  readonly data: Uint8Array
}

/** Draws a page of a PDF, from 1. */
export async function drawPage(pdf: Uint8Array, page: number, dpi: number): Promise<Grey> {
  const library = await PDFiumLibrary.init()
  const document = await library.loadDocument(pdf)
  try {
    const { width, height, data } = await document.getPage(page - 1).render({ scale: dpi / 72, render: 'bitmap', colorSpace: 'Gray' })
    return { width, height, data: Uint8Array.from(data) }
  } finally {
    document.destroy()
    library.destroy()
  }
}

/** Draws a page of text in a Latin font. */
export async function drawText(text: string, dpi = 150): Promise<Grey> {
  return drawPage(await toPdf([(pdf) => pdf.fontSize(14).text(text)]), 1, dpi)
}

/** A PDF whose pages are these pictures, and nothing else. */
export function toScan(images: readonly Grey[], stamp?: (page: number) => string): Promise<Buffer> {
  return toPdf(
    images.map((image, index) => (pdf: PDFDocument) => {
      pdf.image(toPng(image), 0, 0, { width: 612, height: 792 })
      if (stamp) pdf.fontSize(10).text(stamp(index + 1), 300, 700)
    }),
  )
}

/** A PDF with a page for each function. */
export function toPdf(draw: readonly ((pdf: PDFDocument) => void)[]): Promise<Buffer> {
  const pdf = new PDFDocument({ autoFirstPage: false })
  const pieces: Buffer[] = []
  pdf.on('data', (piece: Buffer) => pieces.push(piece))
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  pdf.on('end', () => resolve(Buffer.concat(pieces)))
  for (const page of draw) {
    pdf.addPage()
    page(pdf)
  }
  pdf.end()
  return promise
}

export function toPng({ width, height, data }: Grey): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  // 8 bits of grey.
  header[8] = 8
  const rows = Buffer.alloc(height * (width + 1))
  for (let row = 0; row < height; row += 1) rows.set(data.subarray(row * width, (row + 1) * width), row * (width + 1) + 1)
  const chunks = [pngChunk('IHDR', header), pngChunk('IDAT', deflateSync(rows)), pngChunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), ...chunks])
}

function pngChunk(name: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name), data])
  const size = Buffer.alloc(4)
  size.writeUInt32BE(data.length)
  const check = Buffer.alloc(4)
  check.writeUInt32BE(crc32(body))
  return Buffer.concat([size, body, check])
}

/** A TIFF with these pages, not compressed, which are to be shown in this orientation. */
export function toTiff(pages: readonly Grey[], orientation = 1): Buffer {
  const parts: Buffer[] = [Buffer.from('II*\0\0\0\0\0', 'latin1')]
  let at = 8
  let link = { buffer: parts[0]!, offset: 4 }
  for (const { width, height, data } of pages) {
    const start = at
    const tags = [
      [256, width],
      [257, height],
      [258, 8],
      [259, 1],
      [262, 1],
      [273, start],
      [274, orientation],
      [277, 1],
      [278, height],
      [279, data.length],
    ] as const
    const directory = Buffer.alloc(2 + tags.length * 12 + 4)
    directory.writeUInt16LE(tags.length, 0)
    for (const [index, [tag, value]] of tags.entries()) {
      directory.writeUInt16LE(tag, 2 + index * 12)
      // One number of 32 bits.
      directory.writeUInt16LE(4, 4 + index * 12)
      directory.writeUInt32LE(1, 6 + index * 12)
      directory.writeUInt32LE(value, 10 + index * 12)
    }
    const pixels = data.length % 2 === 0 ? Buffer.from(data) : Buffer.concat([data, Buffer.alloc(1)])
    link.buffer.writeUInt32LE(start + pixels.length, link.offset)
    parts.push(pixels, directory)
    link = { buffer: directory, offset: directory.length - 4 }
    at += pixels.length + directory.length
  }
  return Buffer.concat(parts)
}
