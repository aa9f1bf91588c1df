import { Document, HeadingLevel, Packer, Paragraph } from 'docx'
import PDFDocument from 'pdfkit'
import { drawPdf, rtl } from '../subgraphs/knowledge/adapters/parser/test-support/draw-pdf.ts'
import { type Script, seeded, wordSource } from './support/words.ts'

/** The amount of prose on a printed page. */
const PARAGRAPHS_PER_PAGE = 5
const SENTENCES_PER_PARAGRAPH = 6
const WORDS_PER_SENTENCE = 15

/** Returns the paragraphs of this many pages, page by page. */
function createPages(pages: number, scripts: readonly Script[]): readonly (readonly string[])[] {
  const word = wordSource(seeded(pages), scripts)
  const many = <T>(length: number, create: () => T) => Array.from({ length }, create)
  const sentence = () => `${many(WORDS_PER_SENTENCE, word).join(' ')}.`
  const paragraph = () => many(SENTENCES_PER_PARAGRAPH, sentence).join(' ')
  return many(pages, () => many(PARAGRAPHS_PER_PAGE, paragraph))
}

/** Creates a text file in Arabic and English. */
export function createTxt(pages: number): Buffer {
  return Buffer.from(createPages(pages, ['en', 'ar']).flat().join('\n\n'))
}

/** Creates a Word file in Arabic and English, with a heading on each page. */
export async function createDocx(pages: number): Promise<Buffer> {
  const children = createPages(pages, ['en', 'ar']).flatMap((paragraphs, i) => [
    new Paragraph({ text: `Page ${i + 1}`, heading: HeadingLevel.HEADING_1 }),
    ...paragraphs.map((text) => new Paragraph(text)),
  ])
  return Packer.toBuffer(new Document({ sections: [{ children }] }))
}

/** Creates a PDF in English only: the fonts that every reader has contain no Arabic. */
export function createPdf(pages: number): Promise<Buffer> {
  const pdf = new PDFDocument()
  const pieces: Buffer[] = []
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  pdf.on('data', (piece) => pieces.push(piece))
  pdf.on('end', () => resolve(Buffer.concat(pieces)))
  for (const [i, paragraphs] of createPages(pages, ['en']).entries()) {
    if (i > 0) pdf.addPage()
    for (const paragraph of paragraphs) pdf.text(paragraph).moveDown()
  }
  pdf.end()
  return promise
}

/**
 * Words of a line, lines of a paragraph, and paragraphs of a page. The last line of a paragraph has a word more, so
 * that each paragraph is a chunk of 200 tokens, as the target requires, and not of fewer.
 */
const ARABIC_PAGE = { words: 11, lines: 6, paragraphs: 2 }
/** Points from line to line; paragraphs are further apart. */
const LINE_HEIGHT = 18
const PARAGRAPH_GAP = 40

/** Creates a PDF in Arabic, drawn from right to left. Its first line starts with `first`. */
export function createArabicPdf(pages: number, first: string): Buffer {
  const word = wordSource(seeded(pages), ['ar'])
  const { words, lines, paragraphs } = ARABIC_PAGE
  const line = () => Array.from({ length: words }, word).join(' ')
  return drawPdf(
    Array.from({ length: pages }, (_, page) =>
      Array.from({ length: paragraphs * lines }, (_, row) => {
        const y = 100 + row * LINE_HEIGHT + Math.floor(row / lines) * PARAGRAPH_GAP
        const isLast = row % lines === lines - 1
        return rtl(560, y, page === 0 && row === 0 ? `${first} ${line()}` : isLast ? `${line()} ${word()}.` : line())
      }),
    ),
  )
}
