import type { PDFPageProxy } from 'pdfjs-dist/legacy/build/pdf.mjs'
import { ParseFailure } from '../../../ports/document-parser.ts'
import type { Pdfjs } from './pdfjs.ts'

/** Represents a gap without a space: a word gap, or wide kerning. */
export const BARE_GAP = '\u200a'

/** Maximum text items per page. A page of 2,000 words with each letter placed separately has 12,000. */
const MAX_ITEMS = 100_000

/**
 * Gaps between the glyphs of an item, as shares of the letter size. A gap of at least `WORD_GAP` separates words, or is
 * wide kerning. A glyph further away starts a new item, so that cells can be distinguished.
 */
const KERNING = 0.03
const WORD_GAP = 0.102
const ITEM_GAP = 0.35
/** A glyph starts a new item if it is further back, or further above or below, than these shares of the letter size. */
const BACK = 0.2
const ASIDE = 0.25
/** Maximum distance of a separately placed vowel mark from its letter, as a share of the letter size. */
const MARK_AWAY = 1
/** Minimum cosine between the directions of an item's glyphs. */
const SAME_DIRECTION = 0.99
/** Maximum difference between the sizes of an item's glyphs, as a share. */
const SAME_SIZE = 0.02

/** A transformation of coordinates, in the order of PDF: `[a, b, c, d, e, f]`. */
export type Matrix = readonly [number, number, number, number, number, number]

const IDENTITY: Matrix = [1, 0, 0, 1, 0, 0]

/** Adjacent glyphs, in the order in which the page shows them. */
export interface GlyphItem {
  readonly glyphs: readonly string[]
  /** Maps letters of size 1 to the coordinates of the page. */
  readonly transform: Matrix
  readonly width: number
  readonly font: Font
}

/** Font properties that pdf.js reports. */
interface Font {
  readonly loadedName: string
  readonly name: string
  readonly vertical?: boolean
  readonly isType3Font?: boolean
  readonly fontMatrix?: readonly number[]
  readonly bbox?: readonly number[]
}

/** A glyph of a text-showing operator. */
interface Glyph {
  /** The letters, in logical order. */
  readonly unicode: string
  readonly width: number
  readonly vmetric?: readonly [number, number, number] | null
  readonly isSpace: boolean
}

/** The text state (ISO 32000-1, 9.3). */
interface TextState {
  readonly ctm: Matrix
  readonly matrix: Matrix
  readonly lineMatrix: Matrix
  readonly font: Font | undefined
  readonly size: number
  readonly charSpacing: number
  readonly wordSpacing: number
  readonly scale: number
  readonly leading: number
  readonly rise: number
}

/**
 * Reads a page's glyphs from pdf.js' operator list. pdf.js' own text reverses right-to-left runs, including the letters
 * of multi-letter glyphs such as lam-alef.
 * @throws {ParseFailure} `limit_exceeded` if the page has too many text items.
 */
export async function readGlyphItems(page: PDFPageProxy, { AnnotationMode, OPS }: Pdfjs): Promise<readonly GlyphItem[]> {
  const { fnArray, argsArray } = await page.getOperatorList({ annotationMode: AnnotationMode.DISABLE })
  const fonts = new Map<string, Font | undefined>()
  for (const [at, operator] of fnArray.entries()) {
    const name = operator === OPS.setFont ? argsArray[at][0] : operator === OPS.setGState ? fontOfState(argsArray[at])?.[0] : undefined
    if (name !== undefined && !fonts.has(name)) fonts.set(name, await readFont(page, name))
  }
  const items = new ItemBuilder(page)
  const text = new TextMachine(items, fonts)
  // The operators of a soft mask draw transparency, not text.
  let masks = 0
  for (const [at, operator] of fnArray.entries()) {
    const values: readonly unknown[] = argsArray[at] ?? []
    if (operator === OPS.beginGroup && isMask(values)) masks += 1
    else if (operator === OPS.endGroup && isMask(values)) masks -= 1
    else if (masks === 0) run(operator, values)
  }
  items.end()
  return items.all

  function run(operator: number, values: readonly unknown[]): void {
    const numbers = values as readonly number[]
    if (operator === OPS.showText) text.show(values[0] as readonly (Glyph | number)[])
    else if (operator === OPS.setTextMatrix) text.setMatrix(values[0] as Matrix)
    else if (operator === OPS.moveText) text.move(numbers[0]!, numbers[1]!)
    else if (operator === OPS.setLeadingMoveText) text.set({ leading: -numbers[1]! }).move(numbers[0]!, numbers[1]!)
    else if (operator === OPS.nextLine) text.nextLine()
    else if (operator === OPS.setFont) text.setFont(values as readonly [string, number])
    else if (operator === OPS.setGState) text.setFont(fontOfState(values))
    else if (operator === OPS.setCharSpacing) text.set({ charSpacing: numbers[0]! })
    else if (operator === OPS.setWordSpacing) text.set({ wordSpacing: numbers[0]! })
    else if (operator === OPS.setHScale) text.set({ scale: numbers[0]! / 100 })
    else if (operator === OPS.setLeading) text.set({ leading: numbers[0]! })
    else if (operator === OPS.setTextRise) text.set({ rise: numbers[0]! })
    else if (operator === OPS.beginText) text.setMatrix(IDENTITY)
    else if (operator === OPS.save) text.save()
    else if (operator === OPS.restore) text.restore()
    else if (operator === OPS.transform) text.transform(values as unknown as Matrix)
    else if (operator === OPS.paintFormXObjectBegin) {
      items.end()
      text.startForm((values[0] as Matrix | null) ?? IDENTITY)
    } else if (operator === OPS.paintFormXObjectEnd) {
      items.end()
      text.endForm()
    } else if (operator === OPS.beginMarkedContent || operator === OPS.beginMarkedContentProps || operator === OPS.endMarkedContent)
      items.end()
  }
}

/**
 * Reads the text of a page as pdf.js assembles it. It takes less memory where the page has many drawings. Returns
 * undefined for a page with right-to-left letters.
 * @throws {ParseFailure} `limit_exceeded` if the page has too many text items.
 */
export async function readTextItems(page: PDFPageProxy): Promise<readonly GlyphItem[] | undefined> {
  const { items } = await page.getTextContent({ disableNormalization: true })
  const texts = items.filter((item) => 'str' in item).filter(({ str }) => str.trim() !== '')
  if (texts.some(({ str }) => /[\p{Script=Arabic}\p{Script=Hebrew}]/u.test(str))) return undefined
  if (texts.length > MAX_ITEMS) throw tooMany(page)
  return texts.map(({ str, transform, width, fontName }) => {
    return { glyphs: [...str], transform: transform as unknown as Matrix, width, font: { loadedName: fontName, name: '' } }
  })
}

function tooMany({ pageNumber }: PDFPageProxy): ParseFailure {
  return new ParseFailure('limit_exceeded', `Page ${pageNumber} has more than ${MAX_ITEMS} pieces of text.`)
}

function isMask([group]: readonly unknown[]): boolean {
  return Boolean((group as { readonly smask?: unknown } | undefined)?.smask)
}

/** Returns the name and the size of the font that a graphics state sets. */
function fontOfState([entries]: readonly unknown[]): readonly [string, number] | undefined {
  return (entries as readonly (readonly [string, never])[]).find(([key]) => key === 'Font')?.[1]
}

/** Returns undefined for a font that cannot be read. pdf.js returns the text of its error then. */
async function readFont({ commonObjs }: PDFPageProxy, name: string): Promise<Font | undefined> {
  const font = await new Promise<unknown>((resolve) => commonObjs.get(name, resolve))
  return typeof font === 'object' ? (font as Font) : undefined
}

/** Runs the text operators (ISO 32000-1, 9.4) and positions each glyph. */
class TextMachine {
  readonly #items: ItemBuilder
  readonly #fonts: ReadonlyMap<string, Font | undefined>
  #saved: TextState[] = []
  readonly #forms: { readonly saved: TextState[]; readonly state: TextState }[] = []
  #state: TextState = {
    ctm: IDENTITY,
    matrix: IDENTITY,
    lineMatrix: IDENTITY,
    font: undefined,
    size: 0,
    charSpacing: 0,
    wordSpacing: 0,
    scale: 1,
    leading: 0,
    rise: 0,
  }

  constructor(items: ItemBuilder, fonts: ReadonlyMap<string, Font | undefined>) {
    this.#items = items
    this.#fonts = fonts
  }

  set(state: Partial<TextState>): this {
    this.#state = { ...this.#state, ...state }
    return this
  }

  setFont(font: readonly [string, number] | undefined): void {
    if (font) this.#change({ ...this.#state, font: this.#fonts.get(font[0]), size: font[1] })
  }

  save(): void {
    this.#saved.push(this.#state)
  }

  restore(): void {
    this.#change(this.#saved.pop() ?? this.#state)
  }

  /** A form cannot restore a state that was saved outside of it. */
  startForm(matrix: Matrix): void {
    this.#forms.push({ saved: this.#saved, state: this.#state })
    this.#saved = []
    this.transform(matrix)
  }

  endForm(): void {
    const { saved, state } = this.#forms.pop() ?? { saved: this.#saved, state: this.#state }
    this.#saved = saved
    this.#change(state)
  }

  /** An item has one font, so a change ends the item. */
  #change(state: TextState): void {
    if (state.font !== this.#state.font || state.size !== this.#state.size) this.#items.end()
    this.#state = state
  }

  transform(matrix: Matrix): void {
    this.set({ ctm: multiplied(this.#state.ctm, matrix) })
  }

  setMatrix(matrix: Matrix): void {
    this.set({ matrix, lineMatrix: matrix })
  }

  move(x: number, y: number): void {
    this.setMatrix(multiplied(this.#state.lineMatrix, [1, 0, 0, 1, x, y]))
  }

  nextLine(): void {
    this.move(0, -this.#state.leading)
  }

  show(glyphs: readonly (Glyph | number)[]): void {
    const { ctm, matrix, lineMatrix, font, size, charSpacing, wordSpacing, scale, rise } = this.#state
    if (!font) return
    const whole = multiplied(ctm, matrix)
    const [a, b, c, d] = multiplied(whole, [size * scale, 0, 0, heightOf(font, size), 0, 0])
    const unit = Math.abs(size) * Math.hypot(ctm[0], ctm[1]) * Math.hypot(lineMatrix[0], lineMatrix[1])
    const perWidth = (font.fontMatrix?.[0] ?? 0.001) * size
    const at = (x: number, y: number) => multiplied(whole, [1, 0, 0, 1, x, y + rise])
    let [x, y] = [0, 0]
    for (const glyph of glyphs) {
      if (typeof glyph === 'number') {
        if (font.vertical) y -= (glyph * size) / 1000
        else x -= ((glyph * size) / 1000) * scale
        continue
      }
      const spacing = charSpacing + (glyph.isSpace ? wordSpacing : 0)
      const [width, height] = font.vertical ? [0, (glyph.vmetric?.[0] ?? -glyph.width) * perWidth] : [glyph.width * perWidth * scale, 0]
      const [, , , , x0, y0] = at(x, y)
      const [, , , , x1, y1] = at(x + width, y + height)
      this.#items.add(glyph.unicode, { transform: [a, b, c, d, x0, y0], x1, y1, unit, font })
      if (font.vertical) y += height - spacing
      else x += width + spacing * scale
    }
    this.set({ matrix: multiplied(matrix, [1, 0, 0, 1, x, y]) })
  }
}

/** Returns the height of letters. Type 3 fonts often have size 1 and scale their drawings. */
function heightOf({ isType3Font, fontMatrix, bbox }: Font, size: number): number {
  const height = isType3Font && size <= 1 && fontMatrix && bbox ? (bbox[3]! - bbox[1]!) * fontMatrix[3]! : 0
  return height > 0 ? size * height : size
}

interface Placed {
  readonly transform: Matrix
  /** The end of the glyph. */
  readonly x1: number
  readonly y1: number
  /** The letter size, in the coordinates of the page. */
  readonly unit: number
  readonly font: Font
}

/** Joins glyphs into items. */
class ItemBuilder {
  readonly all: GlyphItem[] = []
  readonly #page: PDFPageProxy
  #open: { readonly first: Matrix; readonly glyphs: string[] } | undefined
  #last: Placed | undefined
  /** True if a space follows the last letter. */
  #isSpaced = false

  constructor(page: PDFPageProxy) {
    this.#page = page
  }

  add(text: string, placed: Placed): void {
    if (/^\s/.test(text)) this.#isSpaced = true
    const letters = text.trimStart()
    if ((letters === '' && text !== '') || /\p{Cf}$/u.test(text) || this.#isBeside(placed)) return
    const isMark = /^\p{Mn}+$/u.test(letters)
    const gap = this.#last ? gapBetween(this.#last, placed, isMark ? MARK_AWAY : ASIDE) : Infinity
    if (!(isMark ? Math.abs(gap) <= MARK_AWAY : gap >= -BACK && gap <= ITEM_GAP)) this.end()
    const { first = placed.transform, glyphs = [] } = this.#open ?? {}
    if (this.#isSpaced && gap > KERNING && (this.#open || gap <= ITEM_GAP)) glyphs.push(' ')
    else if (gap > WORD_GAP && !isMark && this.#open) glyphs.push(BARE_GAP)
    this.#isSpaced = false
    glyphs.push(letters)
    // A mark is drawn on a letter, so the next letter follows that letter.
    if (!isMark || !this.#open) this.#last = placed
    this.#open = { first, glyphs }
  }

  /** Reports whether a glyph is outside the page. */
  #isBeside({ transform: [, , , , x0, y0], x1, y1 }: Placed): boolean {
    const [left, bottom, right, top] = this.#page.view as [number, number, number, number]
    return Math.max(x0, x1) < left || Math.min(x0, x1) > right || Math.max(y0, y1) < bottom || Math.min(y0, y1) > top
  }

  end(): void {
    if (!this.#open) return
    const { first, glyphs } = this.#open
    const { x1, y1, font } = this.#last!
    this.#open = undefined
    if (glyphs.every((glyph) => glyph.trim() === '')) return
    if (this.all.length === MAX_ITEMS) throw tooMany(this.#page)
    const width = font.vertical ? Math.hypot(first[0], first[1]) : Math.hypot(x1 - first[4], y1 - first[5])
    this.all.push({ glyphs, transform: first, width, font })
  }
}

/**
 * Returns the distance from the previous glyph, in letter sizes. Returns infinity if the glyph is on another line, or
 * has another direction or size.
 */
function gapBetween(last: Placed, { transform: [a, b, c, d, x, y], unit, font }: Placed, mostAside: number): number {
  const [u, v, height] = font.vertical ? [-c, -d, Math.hypot(a, b)] : [a, b, Math.hypot(c, d)]
  const [p, q] = font.vertical ? [-last.transform[2], -last.transform[3]] : [last.transform[0], last.transform[1]]
  const [length, before] = [Math.hypot(u, v), Math.hypot(p, q)]
  const isTurned = u * p + v * q < SAME_DIRECTION * length * before
  const aside = Math.abs(u * (y - last.y1) - v * (x - last.x1)) / length
  if (isTurned || Math.abs(length - before) > SAME_SIZE * length || aside > mostAside * height) return Infinity
  return (u * (x - last.x1) + v * (y - last.y1)) / length / unit
}

/** Returns the matrix that applies the second one first, then the first one. */
export function multiplied([a, b, c, d, e, f]: Matrix, [p, q, r, s, t, u]: Matrix): Matrix {
  return [a * p + c * q, b * p + d * q, a * r + c * s, b * r + d * s, a * t + c * u + e, b * t + d * u + f]
}
