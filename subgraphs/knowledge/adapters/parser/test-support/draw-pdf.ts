/**
 * A piece of text in a PDF: glyphs from `x` to the right, with their base line `y` points below the top of the page.
 */
export interface Drawn {
  readonly x: number
  readonly y: number
  /** The glyphs from left to right. One may stand for several letters. */
  readonly glyphs: readonly string[]
  readonly size: number
  readonly isBold: boolean
  /** The number of clockwise quarter turns. */
  readonly turns?: number
}

const PAGE_WIDTH = 600
const PAGE_HEIGHT = 800
/** Every glyph is half as wide as it is high, and draws nothing. */
const GLYPH_WIDTH = 0.5

export function measureWidth(glyphs: readonly string[], size: number): number {
  return glyphs.filter((glyph) => !/^\p{M}+$/u.test(glyph)).length * size * GLYPH_WIDTH
}

interface TextStyle {
  readonly size?: number
  readonly isBold?: boolean
}

/** Returns left-to-right text. */
export function ltr(x: number, y: number, text: string, { size = 10, isBold = false }: TextStyle = {}): Drawn {
  return { x, y, glyphs: [...text], size, isBold }
}

/** Returns right-to-left text that ends at `right`. Lam-alef is one glyph. */
export function rtl(right: number, y: number, text: string, { size = 10, isBold = false }: TextStyle = {}): Drawn {
  const glyphs = (text.match(/ل[اأإآ]|./gsu) ?? []).reverse()
  return { x: right - measureWidth(glyphs, size), y, glyphs, size, isBold }
}

/** Returns a PDF with these pages, which are shown turned by `rotate` degrees. Its fonts map each glyph to its letters and have no other data. */
export function drawPdf(pages: readonly (readonly Drawn[])[], outline: readonly string[] = [], rotate = 0): Buffer {
  const objects: string[] = ['', '']
  const add = (body: string) => objects.push(body)
  const codes = [...new Set(pages.flatMap((page) => page.flatMap(({ glyphs }) => glyphs)))]
  const table = add(stream(toUnicode(codes)))
  const widths = codes.map((glyph) => (/^\p{M}+$/u.test(glyph) ? 0 : 1_000 * GLYPH_WIDTH)).join(' ')
  const fonts = ['Drawn', 'Drawn-Bold'].map((name) => {
    const descendant = add(
      `<</Type/Font/Subtype/CIDFontType2/BaseFont/${name}/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/DW 500/W[1[${widths}]]` +
        `/FontDescriptor<</Type/FontDescriptor/FontName/${name}/Flags 4/FontBBox[0 -200 1000 800]/ItalicAngle 0/Ascent 800/Descent -200/CapHeight 700/StemV 80>>>>`,
    )
    return add(
      `<</Type/Font/Subtype/Type0/BaseFont/${name}/Encoding/Identity-H/DescendantFonts[${descendant} 0 R]/ToUnicode ${table} 0 R>>`,
    )
  })
  const kids = pages.map((page) => {
    const content = add(stream(page.map((drawn) => operators(drawn, codes)).join('\n')))
    return add(
      `<</Type/Page/Parent 2 0 R/MediaBox[0 0 ${PAGE_WIDTH} ${PAGE_HEIGHT}]/Rotate ${rotate}/Contents ${content} 0 R/Resources<</Font<</F0 ${fonts[0]} 0 R/F1 ${fonts[1]} 0 R>>>>>>`,
    )
  })
  const items = outline.map((_, index) => objects.length + 2 + index)
  const outlines =
    outline.length === 0 ? '' : `/Outlines ${add(`<</First ${items[0]} 0 R/Last ${items.at(-1)} 0 R/Count ${items.length}>>`)} 0 R`
  for (const [index, title] of outline.entries()) {
    const next = items[index + 1]
    add(`<</Title<FEFF${hex(title)}>/Parent ${items[0]! - 1} 0 R${next ? `/Next ${next} 0 R` : ''}>>`)
  }
  objects[0] = `<</Type/Catalog/Pages 2 0 R${outlines}>>`
  objects[1] = `<</Type/Pages/Kids[${kids.map((kid) => `${kid} 0 R`).join(' ')}]/Count ${kids.length}>>`
  return file(objects)
}

function operators({ x, y, glyphs, size, isBold, turns = 0 }: Drawn, codes: readonly string[]): string {
  const [cos, sin] = [[1, 0] as const, [0, -1] as const, [-1, 0] as const, [0, 1] as const][turns]!
  const shown = glyphs.map((glyph) => (codes.indexOf(glyph) + 1).toString(16).padStart(4, '0')).join('')
  return `BT /F${isBold ? 1 : 0} ${size} Tf ${cos} ${sin} ${-sin} ${cos} ${x} ${PAGE_HEIGHT - y} Tm <${shown}> Tj ET`
}

function toUnicode(codes: readonly string[]): string {
  const lines = codes.map((glyph, index) => `<${(index + 1).toString(16).padStart(4, '0')}> <${hex(glyph)}>`)
  const blocks: string[] = []
  for (let at = 0; at < lines.length; at += 100) {
    const block = lines.slice(at, at + 100)
    blocks.push(`${block.length} beginbfchar\n${block.join('\n')}\nendbfchar`)
  }
  return `/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Drawn def 1 begincodespacerange <0000> <ffff> endcodespacerange\n${blocks.join('\n')}\nendcmap end end`
}

function hex(text: string): string {
  return Buffer.from(text, 'utf16le').swap16().toString('hex')
}

function stream(content: string): string {
  return `<</Length ${Buffer.byteLength(content)}>>\nstream\n${content}\nendstream`
}

function file(objects: readonly string[]): Buffer {
  let text = '%PDF-1.7\n'
  const offsets = objects.map((body, index) => {
    const offset = text.length
    text += `${index + 1} 0 obj\n${body}\nendobj\n`
    return offset
  })
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  const size = objects.length + 1
  return Buffer.from(
    `${text}xref\n0 ${size}\n0000000000 65535 f \n${table}trailer <</Size ${size}/Root 1 0 R>>\nstartxref\n${text.length}\n%%EOF`,
  )
}
