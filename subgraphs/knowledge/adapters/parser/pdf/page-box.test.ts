import { describe, expect, it } from 'vitest'
import type { Box } from '../../../ports/document-parser.ts'
import { DEFAULT_LIMITS } from '../limits.ts'
import { DocumentBuilder } from '../readers/document-builder.ts'
import { type Drawn, drawPdf, ltr, measureWidth, rtl } from '../test-support/draw-pdf.ts'
import { toPageBox } from './page-box.ts'
import { readPdf } from './read-pdf.ts'

async function read(page: readonly Drawn[], rotate = 0) {
  const builder = new DocumentBuilder(DEFAULT_LIMITS)
  const { text, layout } = builder.build('application/pdf', await readPdf(drawPdf([page], [], rotate), builder, DEFAULT_LIMITS))
  const lines = layout!.lines.map(({ charStart, charEnd, page: _, ...box }) => ({ text: text.slice(charStart, charEnd), box }))
  return { lines, pages: layout!.pages }
}

/** Returns the box around letters of size 10 on this baseline. */
const around = (x: number, y: number, width: number): Box => ({ x, y: y - 9, width, height: 12.5 })
const widthOf = (text: string) => measureWidth([...text], 10)

describe('Bounding boxes of a PDF', () => {
  it('surround its lines, from the top left corner of the page', async () => {
    const [first, second] = ['The first line of a paragraph that', 'goes on below.'] as const
    const { lines, pages } = await read([ltr(50, 100, first), ltr(50, 112, second)])
    expect(pages).toEqual([{ page: 1, width: 600, height: 800 }])
    expect(lines).toEqual([
      { text: first, box: around(50, 100, widthOf(first)) },
      { text: second, box: around(50, 112, widthOf(second)) },
    ])
  })

  it('match the text of right-to-left Arabic lines, with lam-alef as one glyph', async () => {
    const texts = ['حل المشكلات من خلال الإنتاجية', 'يحتاج إلى وقت'] as const
    const drawn = texts.map((text, index) => rtl(500, 100 + 12 * index, text))
    const { lines } = await read(drawn)
    expect(lines).toEqual(texts.map((text, index) => ({ text, box: around(drawn[index]!.x, 100 + 12 * index, 500 - drawn[index]!.x) })))
  })

  it('do not span two columns', async () => {
    const left = ['The first column goes on and', 'tells of rivers and of the', 'towns that stand on their', 'banks since ancient times']
    const right = ['while the other column has', 'something else to say about', 'mountains and the people of', 'their valleys far away now']
    const column = (x: number, texts: readonly string[]) => texts.map((text, index) => ltr(x, 100 + index * 12, text))
    const { lines } = await read([...column(50, left), ...column(320, right)])
    expect(lines).toEqual([
      ...left.map((text, index) => ({ text, box: around(50, 100 + index * 12, widthOf(text)) })),
      ...right.map((text, index) => ({ text, box: around(320, 100 + index * 12, widthOf(text)) })),
    ])
  })

  it('surround the whole row of a table, even with a cell of two lines', async () => {
    const row = (y: number, cells: readonly string[]) => cells.map((cell, index) => ltr(50 + index * 150, y, cell))
    const table = [row(100, ['Port', 'Ships', 'Tons']), row(130, ['Sur', '12', '340']), row(160, ['Muscat', '31', '955'])]
    const { lines } = await read([...table.flat(), ltr(50, 172, 'and Mutrah'), ...row(202, ['Sohar', '8', '210'])])
    const muscat = lines.find(({ text }) => text.startsWith('Muscat'))!
    expect(muscat.text).toBe('Muscat and Mutrah | 31 | 955')
    expect(muscat.box).toEqual({ x: 50, y: 151, width: 300 + widthOf('955'), height: 24.5 })
  })

  it('of a hyphenated word belong to that word', async () => {
    const { lines } = await read([ltr(50, 100, 'A paragraph of infor-'), ltr(50, 112, 'mation about things.')])
    expect(lines.map(({ text }) => text)).toEqual(['A paragraph of infor', 'mation about things.'])
  })

  it.each([
    [90, { width: 800, height: 600 }, (w: number) => ({ x: 800 - 103.5, y: 50, width: 12.5, height: w })],
    [180, { width: 600, height: 800 }, (w: number) => ({ x: 550 - w, y: 800 - 103.5, width: w, height: 12.5 })],
    [270, { width: 800, height: 600 }, (w: number) => ({ x: 91, y: 550 - w, width: 12.5, height: w })],
  ] as const)('follow a page rotation of %i degrees', async (rotate, size, boxOf) => {
    const text = 'A line of a page that lies on its side'
    const { lines, pages } = await read([ltr(50, 100, text)], rotate)
    expect(pages).toEqual([{ page: 1, ...size }])
    expect(lines).toEqual([{ text, box: boxOf(widthOf(text)) }])
  })

  it('surround vertical text in the margin, and are clipped to the page', async () => {
    const body = 'The body of the page stands upright as usual'
    const { lines } = await read([ltr(50, 100, body), { ...ltr(20, 400, 'Up the margin'), turns: 3 }, ltr(570, 300, 'beyond the edge')])
    const [up, beyond] = ['Up', 'beyond'].map((word) => lines.find(({ text }) => text.startsWith(word))!.box)
    expect(up).toEqual({ x: 11, y: 400 - widthOf('Up the margin'), width: 12.5, height: widthOf('Up the margin') })
    expect(beyond).toEqual({ x: 570, y: 291, width: 30, height: 12.5 })
  })

  it('are omitted for slanted text and outside the page', () => {
    const area = { x0: 10, x1: 20, y0: 10, y1: 20 }
    expect(toPageBox(area, 4, { width: 600, height: 800 })).toBeNull()
    expect(toPageBox({ ...area, x0: 610, x1: 620 }, 0, { width: 600, height: 800 })).toBeNull()
  })
})
