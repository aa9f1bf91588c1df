import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../../common/process/log.ts'
import type { DocumentParser } from '../../ports/document-parser.ts'
import type { PageRecogniser, RecognisedPage } from '../../ports/page-recogniser.ts'
import type { ParserLimits } from './limits.ts'
import { openDocumentParser } from './open-document-parser.ts'
import { openPageRecogniser } from './open-page-recogniser.ts'
import { cutBelow, mirrored, toJpeg, toWebp, turned } from './test-support/images.ts'
import { drawText, type Grey, toPdf, toPng, toScan, toTiff } from './test-support/scans.ts'

const CORPUS = new URL('../../../../../shared/corpus/', import.meta.url)
const never = new AbortController().signal
const TIMEOUT_MS = 180_000

let parser: DocumentParser
let recogniser: PageRecogniser
let harbour: Grey
let kiln: Grey
let dirt: Grey
beforeAll(async () => {
  parser = await openDocumentParser({ log: silentLog })
  recogniser = await openPageRecogniser({ log: silentLog })
  harbour = await drawText('The harbour of Sur was rebuilt by the carpenters of the old town.')
  kiln = await drawText('A kiln for bricks was fired with palm leaves every winter.')
  dirt = { ...harbour, data: harbour.data.map((_, index) => (index % 7_919 === 0 ? 0 : 255)) }
}, TIMEOUT_MS)
afterAll(async () => {
  await parser[Symbol.asyncDispose]()
  await recogniser[Symbol.asyncDispose]()
})

/** Returns what the parser leaves to OCR, and the recognized text. */
async function read(bytes: Uint8Array, name: string, by = recogniser) {
  const parsed = await parser.parse(bytes, name, never, { defersOcr: true })
  return { parsed, pages: await recognise(bytes, parsed.mediaType, parsed.unread, by) }
}

async function recognise(
  bytes: Uint8Array,
  mediaType: string,
  pages: readonly number[],
  by = recogniser,
): Promise<readonly RecognisedPage[]> {
  return await Array.fromAsync(by.recognise({ organizationId: 'org_1', file: bytes, mediaType, pages }, never))
}

async function withLimits<T>(limits: Partial<ParserLimits>, use: (own: PageRecogniser) => Promise<T>): Promise<T> {
  await using own = await openPageRecogniser({ log: silentLog, limits })
  return await use(own)
}

const textOf = (pages: readonly RecognisedPage[]) => pages.map(({ paragraphs }) => paragraphs.join('\n'))

describe('OCR of scans', () => {
  it('reads pages one by one, except those with a text layer', { timeout: TIMEOUT_MS }, async () => {
    const scan = await toPdf([
      (pdf) => pdf.text('A page whose letters the file has, with enough words to be judged as the text that it is.'),
      (pdf) => pdf.image(toPng(harbour), 0, 0, { width: 612, height: 792 }),
      (pdf) => pdf.image(toPng(dirt), 0, 0, { width: 612, height: 792 }),
    ])
    const { parsed, pages } = await read(scan, 'a.pdf')
    expect(parsed).toMatchObject({ unread: [2, 3], pageCount: 3, warnings: [] })
    expect(parsed.text).toContain('A page whose letters the file has')
    expect(textOf(pages)).toEqual(['The harbour of Sur was rebuilt by the carpenters of the old town.', ''])
    expect(pages[0]!.confidence).toBeGreaterThan(80)
  })

  it('treats pages with only a stamped page number as scans', { timeout: TIMEOUT_MS }, async () => {
    const { parsed, pages } = await read(await toScan([harbour, kiln], (page) => `Page ${page}`), 'a.pdf')
    expect(parsed.unread).toEqual([1, 2])
    expect(textOf(pages)[1]).toContain('A kiln for bricks')
  })
})

describe('OCR of image files', () => {
  it('accepts PNG, and each page of a TIFF', { timeout: TIMEOUT_MS }, async () => {
    const png = await read(toPng(kiln), 'a.png')
    expect(png.parsed).toMatchObject({ mediaType: 'image/png', unread: [1], pageCount: 1, text: '' })
    expect(textOf(png.pages)).toEqual(['A kiln for bricks was fired with palm leaves every winter.'])
    const tiff = await read(toTiff([kiln, harbour]), 'a.tif')
    expect(tiff.parsed).toMatchObject({ mediaType: 'image/tiff', unread: [1, 2], pageCount: 2 })
    expect(textOf(tiff.pages)[0]).toContain('A kiln for bricks')
    expect(textOf(tiff.pages)[1]).toContain('The harbour of Sur')
  })

  it('refuses images without OCR, and too large or corrupted ones', async () => {
    await expect(parser.parse(toPng(kiln), 'a.png', never)).rejects.toMatchObject({ code: 'no_text' })
    const huge = Buffer.from(toPng(kiln))
    huge.writeUInt32BE(100_000, 16)
    await expect(read(huge, 'a.png')).rejects.toMatchObject({ code: 'limit_exceeded' })
    await expect(read(toTiff([kiln]).subarray(0, 100), 'a.tif')).rejects.toMatchObject({ code: 'corrupt' })
  })
})

/** One line with the same position in every orientation of its image. */
const TEXT = 'The harbour of Sur was rebuilt by the carpenters of the old town.'
const LINE = { charStart: 0, charEnd: TEXT.length, x: 150, y: 149, width: 828, height: 28 }

describe('OCR orientation', () => {
  let strip: Grey
  let left: Grey
  let right: Grey
  let down: Grey
  beforeAll(() => {
    strip = cutBelow(harbour, 260)
    right = turned(strip, 1)
    down = turned(strip, 2)
    left = turned(strip, 3)
  })

  it.each([
    ['a JPEG', 'a.jpg', () => toJpeg(strip)],
    ['a WebP', 'a.webp', () => toWebp(strip)],
    ['a JPEG that Exif rotates to the right', 'a.jpg', () => toJpeg(left, 6)],
    ['a JPEG that Exif rotates to the left, in the other byte order', 'a.jpg', () => toJpeg(right, 8, false)],
    ['a JPEG that Exif rotates by 180°', 'a.jpg', () => toJpeg(down, 3)],
    ['a JPEG that Exif mirrors', 'a.jpg', () => toJpeg(turned(mirrored(strip), 3), 5)],
    ['a WebP that Exif rotates', 'a.webp', () => toWebp(left, 6)],
    ['a TIFF with a rotated page', 'a.tif', () => toTiff([left], 6)],
  ] as const)('reads an image as displayed, with the position of its lines: %s', { timeout: TIMEOUT_MS }, async (_name, file, create) => {
    const { parsed, pages } = await read(create(), file)
    expect(parsed.pageCount).toBe(1)
    expect(pages).toEqual([
      { page: 1, confidence: expect.any(Number), paragraphs: [TEXT], layout: { width: 1_275, height: 260, lines: [LINE] } },
    ])
  })

  it.each([
    ['lying on its left side', () => left, { x: 149, y: 297, width: 28, height: 828 }],
    ['lying on its right side', () => right, { x: 83, y: 150, width: 28, height: 828 }],
    ['upside down', () => down, { x: 297, y: 83, width: 828, height: 28 }],
  ] as const)('reads a rotated image without Exif: %s', { timeout: TIMEOUT_MS }, async (_name, createImage, box) => {
    const image = createImage()
    const { pages } = await read(toJpeg(image), 'a.jpg')
    const { width, height } = image
    const lines = [{ charStart: 0, charEnd: TEXT.length, ...box }]
    expect(pages).toEqual([{ page: 1, confidence: expect.any(Number), paragraphs: [TEXT], layout: { width, height, lines } }])
  })

  it('reads rotated PDF pages as displayed', { timeout: TIMEOUT_MS }, async () => {
    const scan = await toPdf(
      ([left, down, right] as const).map((image, index) => (pdf) => {
        pdf.page.dictionary.data.Rotate = 90 * (index + 1)
        pdf.image(toPng(image), 0, 0, index === 1 ? { width: 588, height: 120 } : { width: 120, height: 588 })
      }),
    )
    const { pages } = await read(scan, 'a.pdf')
    expect(textOf(pages)).toEqual([TEXT, TEXT, TEXT])
    const positions = pages.map(({ layout }) => [layout!.width, layout!.height, layout!.lines[0]!.x, layout!.lines[0]!.y].map(Math.round))
    const wanted = [
      [792, 612, 273, 69],
      [612, 792, 93, 741],
      [792, 612, 69, 561],
    ]
    // A rendered letter may be a pixel or two larger.
    const apart = positions.flatMap((position, page) => position.map((value, at) => Math.abs(value - wanted[page]![at]!)))
    expect(Math.max(...apart)).toBeLessThanOrEqual(2)
  })
})

describe('OCR failures and limits', () => {
  it('continue with the other pages after a corrupted one', { timeout: TIMEOUT_MS }, async () => {
    const tiff = toTiff([kiln, harbour])
    // The first page declares an unknown compression.
    const directory = tiff.readUInt32LE(4)
    tiff.writeUInt32LE(12_345, directory + 2 + 3 * 12 + 8)
    const { pages } = await read(tiff, 'a.tif')
    expect(pages[0]).toEqual({ page: 1, confidence: null, paragraphs: [] })
    expect(textOf(pages)[1]).toContain('The harbour of Sur')
  })

  it('skip a page that takes too long or too much memory', { timeout: TIMEOUT_MS }, async () => {
    const inputPages = [{ page: 1, confidence: null, paragraphs: [] }]
    const late = [{ ...inputPages[0], isOutOfTime: true }]
    expect(await withLimits({ pageTimeoutMs: 1 }, (own) => recognise(toPng(kiln), 'image/png', [1], own))).toEqual(late)
    expect(await withLimits({ maxRssBytes: 1 }, (own) => recognise(toPng(kiln), 'image/png', [1], own))).toEqual([
      { ...inputPages[0], isOutOfMemory: true },
    ])
    const scan = await toScan([harbour, kiln])
    const all = await withLimits({ pageTimeoutMs: 1 }, (own) => recognise(scan, 'application/pdf', [1, 2], own))
    expect(all.map(({ confidence }) => confidence)).toEqual([null, null])
  })

  it.skipIf(!existsSync('/proc/self/stat'))('skip a page that takes too much processor time', { timeout: TIMEOUT_MS }, async () => {
    const noise = { ...harbour, data: harbour.data.map((_, index) => (((index * 2_654_435_761) >>> 13) % 3 === 0 ? 0 : 255)) }
    const scan = await toScan([noise, kiln])
    const pages = await withLimits({ pageCpuMs: 4_000 }, (own) => recognise(scan, 'application/pdf', [1, 2], own))
    expect(pages[0]).toEqual({ page: 1, confidence: null, paragraphs: [], isOutOfTime: true })
    expect(textOf(pages)[1]).toContain('A kiln for bricks')
  })

  it('process one page per turn while another organization waits', { timeout: TIMEOUT_MS }, async () => {
    const scan = await toScan([harbour, kiln, kiln])
    const input = { file: scan, mediaType: 'application/pdf' }
    const order: string[] = []
    const readAll = async (organizationId: string, pages: readonly number[], begun = () => {}) => {
      for await (const { page } of recogniser.recognise({ ...input, organizationId, pages }, never)) {
        order.push(`${organizationId} ${page}`)
        begun()
      }
    }
    let small: Promise<void> | undefined
    await readAll('org_1', [1, 2, 3], () => {
      small ??= readAll('org_2', [1])
    })
    await small
    expect(order).toEqual(['org_1 1', 'org_2 1', 'org_1 2', 'org_1 3'])
  })

  it('end the process when the caller disconnects, and continue with the next organization', { timeout: TIMEOUT_MS }, async () => {
    const scan = await toScan([harbour, kiln])
    const leaving = new AbortController()
    const input = { file: scan, mediaType: 'application/pdf', pages: [1, 2] }
    const first = recogniser.recognise({ ...input, organizationId: 'org_1' }, leaving.signal)[Symbol.asyncIterator]()
    await first.next()
    const waiting = Array.fromAsync(recogniser.recognise({ ...input, organizationId: 'org_2' }, never))
    leaving.abort(new Error('deleted'))
    await expect(first.next()).rejects.toThrow('deleted')
    expect(textOf(await waiting)[0]).toContain('The harbour of Sur')
  })
})

describe.skipIf(!existsSync(CORPUS))('OCR of real scans', () => {
  it('reads English', { timeout: TIMEOUT_MS }, async () => {
    const { pages } = await read(readFileSync(new URL('bad-scan.pdf', CORPUS)), 'bad-scan.pdf')
    expect(textOf(pages)).toEqual(['Docling bundles PDF document conversion to JSON and Markdown in an easy self contained package'])
  })
})
