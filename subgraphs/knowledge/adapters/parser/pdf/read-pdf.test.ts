import { describe, expect, it } from 'vitest'
import type { ParsedDocument } from '../../../ports/document-parser.ts'
import { DEFAULT_LIMITS } from '../limits.ts'
import { DocumentBuilder } from '../readers/document-builder.ts'
import { type Drawn, drawPdf, ltr, measureWidth, rtl } from '../test-support/draw-pdf.ts'
import { readPdf } from './read-pdf.ts'

async function read(pages: readonly (readonly Drawn[])[], outline: readonly string[] = []): Promise<ParsedDocument> {
  const builder = new DocumentBuilder(DEFAULT_LIMITS)
  return builder.build('application/pdf', await readPdf(drawPdf(pages, outline), builder, DEFAULT_LIMITS))
}

function blocksOf({ text, blocks }: ParsedDocument): readonly string[] {
  return blocks.map(({ kind, level = '', page, tableHeader, charStart, charEnd }) => {
    const header = tableHeader === undefined ? '' : ` [${tableHeader}]`
    return `p${page} ${kind}${level}${header}: ${text.slice(charStart, charEnd)}`
  })
}

async function textOf(...page: readonly Drawn[]): Promise<string> {
  return (await read([page])).text
}

/** Draws lines of one column, each as long as the column is wide. */
const lines = (draw: typeof ltr | typeof rtl, x: number, y: number, texts: readonly string[]) =>
  texts.map((text, index) => draw(x, y + index * 12, text))

describe('Latin lines of a PDF', () => {
  it('preserve a space that is narrower than a gap between words', async () => {
    expect(await textOf(ltr(100, 100, 'ab'), ltr(110.8, 100, 'cd'))).toBe('abcd')
    expect(await textOf(ltr(100, 100, 'ab '), ltr(110.8, 100, 'cd'))).toBe('ab cd')
  })

  it('preserve the letters of a glyph that begins with a space', async () => {
    expect(await textOf({ x: 100, y: 100, glyphs: [...'467', '\t.', ...'9 per day'], size: 10, isBold: false })).toBe('467.9 per day')
  })
})

describe('Arabic lines of a PDF', () => {
  it('have letters in reading order, and whole lam-alef', async () => {
    expect(await textOf(rtl(500, 100, 'حل المشكلات من خلال الإنتاجية'))).toBe('حل المشكلات من خلال الإنتاجية')
  })

  it('are assembled by the positions of their parts, with a space at each gap', async () => {
    const pieces = [rtl(400, 100, 'خلال'), rtl(500, 100, 'حل'), rtl(480, 100, 'المشكلات'), rtl(425, 100, 'من')]
    expect(await textOf(...pieces)).toBe('حل المشكلات من خلال')
  })

  it('have no space between kerned letters if the font writes the spaces', async () => {
    const [yal, ra] = [rtl(111, 100, 'يال'), rtl(118, 100, 'ر')]
    expect(await textOf(yal, ra)).toBe('ر يال')
    // A gap of a quarter of the letter size that contains a written space.
    let x = 118
    const words = ['خمسة', 'صور', 'إلى', 'مسقط', 'من', 'الرحلة', 'ثمن'].map((word) => {
      const { glyphs } = rtl(0, 0, word)
      x += 2.5 + measureWidth(glyphs, 10)
      return { x: x - measureWidth(glyphs, 10) - 5, y: 100, glyphs: [' ', ...glyphs], size: 10, isBold: false }
    })
    expect(await textOf(yal, ra, ...words)).toBe('ثمن الرحلة من مسقط إلى صور خمسة ريال')
  })

  it('have no space beside a letter whose mark is on its glyph', async () => {
    const letter = { x: 105, y: 100, glyphs: ['أُ'], size: 10, isBold: false }
    expect(await textOf(rtl(105, 100, 'ن'), letter, rtl(115, 100, 'ش'))).toBe('شأُن')
  })

  it('have no space inside a word whose parts touch at different heights', async () => {
    const first = rtl(500, 100, 'الأو')
    expect(await textOf(first, rtl(first.x, 102, 'لى'))).toBe('الأولى')
  })

  it('preserve numbers and Latin words from left to right, in position', async () => {
    const glyphs = [...'.ماع 1,250.75 يف Visual Basic 6 نم 50% غلب']
    expect(await textOf({ x: 100, y: 100, glyphs, size: 10, isBold: false })).toBe('بلغ 50% من Visual Basic 6 في 1,250.75 عام.')
  })

  it('preserve the order of the parts of a date and of a range', async () => {
    const glyphs = [...'٢٠٢٤-٢٠٢٠ ماع 2024-05-12 يف']
    expect(await textOf({ x: 100, y: 100, glyphs, size: 10, isBold: false })).toBe('في 2024-05-12 عام ٢٠٢٠-٢٠٢٤')
  })

  it('have brackets around their content', async () => {
    expect(await textOf({ x: 100, y: 100, glyphs: [...'(ليدعت) (GDP) جتانلا'], size: 10, isBold: false })).toBe('الناتج (GDP) (تعديل)')
  })

  it('have correct brackets even if the font maps them by meaning', async () => {
    expect(await textOf({ x: 100, y: 100, glyphs: [...')ليدعت( 5 ةداملا'], size: 10, isBold: false })).toBe('المادة 5 (تعديل)')
  })

  it('separate a number from adjoining words', async () => {
    expect(await textOf({ x: 100, y: 100, glyphs: [...'نم18ةداملا'], size: 10, isBold: false })).toBe('المادة 18 من')
  })

  it('preserve spaces between thousands', async () => {
    expect(await textOf({ x: 100, y: 100, glyphs: [...'توص 3 001 لان'], size: 10, isBold: false })).toBe('نال 3 001 صوت')
  })

  it('put a vowel mark of another font after its letter', async () => {
    const word = { x: 100, y: 100, glyphs: [...'ءانب'], size: 10, isBold: false }
    expect(await textOf(word, { ...word, x: 98, glyphs: ['\u064b'], isBold: true })).toBe('بناءً')
    expect(await textOf(word, { ...word, x: 116, glyphs: ['\u0650'], isBold: true })).toBe('بِناء')
  })

  it('normalize only Arabic presentation forms, and preserve word ligatures', async () => {
    expect(await textOf(rtl(500, 100, 'ﷺ ﻣﺤﻤﺪ'))).toBe('ﷺ محمد')
    expect(await textOf(ltr(100, 100, 'x² ½ ﬁ'))).toBe('x² ½ ﬁ')
  })

  it('stay in position in an English line', async () => {
    expect(await textOf({ x: 100, y: 100, glyphs: [...'The word ةيبرع is here.'], size: 10, isBold: false })).toBe(
      'The word عربية is here.',
    )
  })
})

describe('PDF page', () => {
  const LEFT = ['The first column goes on and', 'tells of rivers and of the', 'towns that stand on their', 'banks since ancient times']
  const RIGHT = ['while the other column has', 'something else to say about', 'mountains and the people of', 'their valleys far away now']

  it('with two columns is read one column after the other', async () => {
    const page = [...lines(ltr, 50, 100, LEFT), ...lines(ltr, 320, 100, RIGHT)]
    expect(await textOf(ltr(50, 60, 'A line above that stands across both of the columns of this page'), ...page)).toBe(
      `A line above that stands across both of the columns of this page\n\n${LEFT.join(' ')}\n\n${RIGHT.join(' ')}`,
    )
  })

  it('with two Arabic columns is read from the right', async () => {
    const first = ['يروي العمود الأول قصة نهر', 'طويل يمر بمدن كثيرة على', 'ضفتيه منذ زمن بعيد جدا', 'وفيه أخبار أهلها كلهم ثم']
    const second = ['أما العمود الثاني فيحكي', 'عن الجبال وسكان أوديتها', 'البعيدة وعن عادات أهلها', 'وما يزرعون في كل موسم من']
    expect(await textOf(...lines(rtl, 250, 100, second), ...lines(rtl, 520, 100, first))).toBe(`${first.join(' ')}\n\n${second.join(' ')}`)
  })

  it('joins a word that is hyphenated over two lines', async () => {
    expect(await textOf(ltr(50, 100, 'A paragraph of infor-'), ltr(50, 112, 'mation about things.'))).toBe(
      'A paragraph of information about things.',
    )
  })

  it('has vertical margin text after the upright text', async () => {
    const turned = { ...ltr(20, 700, 'Printed by nobody'), turns: 3 }
    expect(await textOf(turned, ltr(50, 100, 'Upright words.'))).toBe('Upright words.\n\nPrinted by nobody')
  })

  it('has text once that is drawn twice for bold', async () => {
    expect(await textOf(ltr(50, 100, 'Twice'), ltr(50.3, 100, 'Twice'))).toBe('Twice')
  })
})

describe('PDF headers and footers', () => {
  it('are omitted except for the first of each title, and page numbers are always omitted', async () => {
    const bodies = ['Alpha is the beginning.', 'Beta comes after it.', 'Gamma is in the middle.', 'Delta ends the list.']
    const pages = bodies.map((body, index) => [ltr(50, 40, 'Annual Report'), ltr(50, 200, body), ltr(300, 780, `- ${index + 1} -`)])
    expect((await read(pages)).text).toBe(['Annual Report', ...bodies].join('\n\n'))
  })
})

describe('PDF tables', () => {
  const HEADER = ['المدينة', 'التاريخ', 'المبلغ']
  const ROWS = [
    ['القاهرة', '2024/05/12', '1,500'],
    ['عمان', '2024/06/01', '750'],
    ['الدار البيضاء', '2024/07/30', ''],
    ['تونس', '2024/08/15', '90'],
  ]
  const cells = (row: readonly string[], y: number) =>
    row.flatMap((cell, index) => {
      const right = 550 - index * 150
      if (cell === '') return []
      return [/\d/.test(cell) ? ltr(right - measureWidth([...cell], 10), y, cell) : rtl(right, y, cell)]
    })

  it('are read from the top and the right, each row whole with its header, though drawn from the bottom', async () => {
    const page = [HEADER, ...ROWS].map((row, index) => cells(row, 100 + index * 20)).reverse()
    expect(blocksOf(await read([page.flat()]))).toEqual([
      'p1 table_row: المدينة | التاريخ | المبلغ',
      ...ROWS.map((row) => `p1 table_row [المدينة | التاريخ | المبلغ]: ${row.join(' | ').trimEnd()}`),
    ])
  })

  it('have a cell of two lines in one row', async () => {
    const page = [
      ...['Name', 'What it is', 'Price'].map((text, index) => ltr(50 + index * 180, 100, text)),
      ...['Lamp', 'A light for the', '15'].map((text, index) => ltr(50 + index * 180, 130, text)),
      ltr(230, 141, 'whole room'),
      ...['Desk', 'Made of oak', '220'].map((text, index) => ltr(50 + index * 180, 170, text)),
      ...['Chair', 'Goes with the', '80'].map((text, index) => ltr(50 + index * 180, 200, text)),
      ltr(230, 211, 'desk'),
    ]
    expect(blocksOf(await read([page])).slice(1)).toEqual([
      'p1 table_row [Name | What it is | Price]: Lamp | A light for the whole room | 15',
      'p1 table_row [Name | What it is | Price]: Desk | Made of oak | 220',
      'p1 table_row [Name | What it is | Price]: Chair | Goes with the desk | 80',
    ])
  })
})

describe('PDF headings', () => {
  const BODY = [
    'Some words of the text that goes on for a while here',
    'and some more of it on another line, so that it is seen',
    'as what the document is set in.',
  ]

  it('are detected by size and weight', async () => {
    const page = [
      ltr(50, 60, 'The title', { size: 24, isBold: true }),
      ltr(50, 100, 'A chapter', { size: 14 }),
      ...lines(ltr, 50, 120, BODY),
      ltr(50, 180, 'A section', { isBold: true }),
      ...lines(ltr, 50, 200, BODY),
      ltr(50, 260, 'Another chapter', { size: 14 }),
      ...lines(ltr, 50, 280, BODY),
      ltr(50, 340, 'One more chapter', { size: 14 }),
      ...lines(ltr, 50, 360, BODY),
    ]
    expect(blocksOf(await read([page])).filter((block) => block.includes('heading'))).toEqual([
      'p1 heading1: The title',
      'p1 heading2: A chapter',
      'p1 heading1: A section',
      'p1 heading2: Another chapter',
      'p1 heading2: One more chapter',
    ])
  })

  it('are detected by the outline', async () => {
    const page = [ltr(50, 60, '1. Introduction'), ...lines(ltr, 50, 80, BODY)]
    expect(blocksOf(await read([page], ['Introduction']))[0]).toBe('p1 heading1: 1. Introduction')
  })
})

describe('Unreadable PDF pages', () => {
  const GOOD = lines(ltr, 50, 100, [
    'These are words that anybody can read, in plain English sentences,',
    'which is what most pages of most documents are made of.',
  ])
  /** Replaces each letter by another one, like a wrong glyph table does. */
  const wrong = (text: string) => text.replace(/[a-z]/g, (letter) => 'qjxzkvwbpfygcmhulrdtsnioae'[letter.charCodeAt(0) - 97]!)
  const BAD = GOOD.map((drawn) => ({ ...drawn, glyphs: [...wrong(drawn.glyphs.join(''))] }))

  it('are omitted and reported', async () => {
    const parsed = await read([GOOD, BAD, [ltr(50, 780, '3')]])
    expect(parsed.text).not.toContain(wrong('anybody'))
    expect(parsed.warnings).toEqual([
      {
        code: 'pages_without_text',
        message:
          '1 of 3 pages have no text: 3. If they show text, set `ocr` of the collection to `auto`, or upload a copy with recognized text.',
        pages: [3],
      },
      {
        code: 'pages_unreadable',
        message:
          '1 of 3 pages cannot be read: 2. The fonts do not say which letters their glyphs stand for. To read them, set `ocr` of the collection to `auto`, or upload a copy with recognized text.',
        pages: [2],
      },
    ])
  })

  it('result in a document without text when all pages are unreadable', async () => {
    await expect(read([BAD])).rejects.toMatchObject({ code: 'no_text' })
    await expect(read([[ltr(50, 100, '\ue012\ue013\ue014 \ue015\ue016')]])).rejects.toMatchObject({ code: 'no_text' })
  })

  it.each([
    ['numbers', (page: number) => `${page}`],
    ['page numbers', (page: number) => `Page ${page} of 2`],
    ['the same words', () => 'Scanned by machine'],
  ])('include those of a scan stamped with %s', async (_what, stamp) => {
    await expect(read([[ltr(50, 780, stamp(1))], [ltr(50, 780, stamp(2))]])).rejects.toMatchObject({ code: 'no_text' })
  })
})
