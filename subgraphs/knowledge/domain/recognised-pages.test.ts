import { expect, it } from 'vitest'
import type { ParsedDocument } from '../ports/document-parser.ts'
import { insertPages } from './recognised-pages.ts'

const parsed: ParsedDocument = {
  mediaType: 'application/pdf',
  text: 'One\n\nTwo\na | b\n\nFive',
  blocks: [
    { kind: 'heading', level: 1, charStart: 0, charEnd: 3, page: 1 },
    { kind: 'paragraph', charStart: 5, charEnd: 8, page: 2 },
    { kind: 'table_row', charStart: 9, charEnd: 14, page: 2 },
    { kind: 'paragraph', charStart: 16, charEnd: 20, page: 5 },
  ],
  pageCount: 7,
  warnings: [],
  unread: [3, 4, 6, 7],
  hasFiles: false,
}
const read = (page: number, confidence: number | null, ...paragraphs: readonly string[]) => ({ page, confidence, paragraphs })
const show = ({ text, blocks }: ParsedDocument) =>
  blocks.map(({ kind, page, charStart, charEnd }) => `${page} ${kind}: ${text.slice(charStart, charEnd)}`)

it('inserts the OCR text of pages at their position', () => {
  const document = insertPages(parsed, [read(3, 90, 'ثلاثة', 'Three'), read(4, 90), read(6, 90, 'Six')])
  expect(document.text).toBe('One\n\nTwo\na | b\n\nثلاثة\n\nThree\n\nFive\n\nSix')
  expect(show(document)).toEqual([
    '1 heading: One',
    '2 paragraph: Two',
    '2 table_row: a | b',
    '3 paragraph: ثلاثة',
    '3 paragraph: Three',
    '5 paragraph: Five',
    '6 paragraph: Six',
  ])
  expect(document.unread).toEqual([])
})

it('creates a document from OCR pages alone', () => {
  const document = insertPages({ ...parsed, text: '', blocks: [], unread: [1, 2] }, [read(1, 90, 'One'), read(2, 90, 'Two')])
  expect(show(document)).toEqual(['1 paragraph: One', '2 paragraph: Two'])
  expect(document.text).toBe('One\n\nTwo')
})

it('preserves the position of each line on the page, for both sources', () => {
  const box = { x: 50, y: 100, width: 80, height: 10 }
  const size = { width: 600, height: 800 }
  const line = (page: number, charStart: number, charEnd: number) => ({ page, charStart, charEnd, ...box })
  const layout = {
    pages: [1, 2, 5].map((page) => ({ page, ...size })),
    lines: [line(1, 0, 3), line(2, 5, 8), line(2, 9, 14), line(5, 16, 20)],
  }
  const scan = { width: 2480, height: 3508 }
  const lines = [
    { charStart: 0, charEnd: 5, ...box },
    { charStart: 7, charEnd: 12, ...box },
  ]
  const document = insertPages({ ...parsed, layout }, [
    { ...read(3, 90, 'ثلاثة', 'Three'), layout: { ...scan, lines } },
    read(6, 90, 'Six'),
  ])
  const shown = document.layout!.lines.map(({ page, charStart, charEnd }) => [page, document.text.slice(charStart, charEnd)])
  expect(shown).toEqual([
    [1, 'One'],
    [2, 'Two'],
    [2, 'a | b'],
    [3, 'ثلاثة'],
    [3, 'Three'],
    [5, 'Five'],
  ])
  expect(document.layout!.pages).toContainEqual({ page: 3, ...scan })
})

it('reports pages that took too much processor time', () => {
  const { warnings } = insertPages(parsed, [read(3, 90, 'Three'), { ...read(4, null), isOutOfTime: true }, read(6, null)])
  expect(warnings.map(({ code, pages }) => [code, pages])).toEqual([
    ['pages_read_by_ocr', [3]],
    ['pages_unreadable', [4]],
    ['pages_unreadable', [6, 7]],
  ])
  expect(warnings[1]!.message).toContain('1 of 7 pages could not be read within 20 s of CPU: 4.')
})

it('reports pages that OCR read, low-confidence pages, blank pages, and unreadable ones', () => {
  const { warnings } = insertPages(parsed, [read(3, 60, 'Three'), read(4, 0), read(6, null)])
  expect(warnings.map(({ code, pages }) => [code, pages])).toEqual([
    ['pages_read_by_ocr', [3]],
    ['ocr_low_confidence', [3]],
    ['pages_without_text', [4]],
    ['pages_unreadable', [6, 7]],
  ])
  expect(warnings[0]!.message).toBe('1 of 7 pages were read by OCR: 3. Some letters may be wrong.')
})
