import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { addTable, type TableCell } from '../tables/add-table.ts'
import { FALLBACKS, isOn, OfficePackage } from '../xml/office-package.ts'
import { findAttribute, findChild, listChildren, listDescendants, readXml, textIn, type XmlElement } from '../xml/xml.ts'
import { readCorruptedDocx } from './read-corrupted-docx.ts'
import { addPlainBody, readPlainBody } from './read-plain-docx.ts'
import { integer, valueIn, WordNumbering } from './word-numbering.ts'
import { readFacts, readStyles, type WordStyle } from './word-styles.ts'

/**
 * Elements whose text is not part of the document: deleted and moved text, phonetic guides, field codes, and data for
 * programs.
 */
const NOT_TEXT = new Set('del moveFrom delText instrText delInstrText pPr rPr sdtPr sdtEndPr rt commentReference annotationRef'.split(' '))
/** The characters that elements of a run represent. */
const CHARACTERS: ReadonlyMap<string, string> = new Map(
  Object.entries({ tab: '\t', ptab: '\t', br: '\u2028', cr: '\u2028', noBreakHyphen: '\u2011' }),
)
const UNITS = new Set(['p', 'tbl'])
const NOTES = { footnoteReference: 'footnotes', endnoteReference: 'endnotes' } as const

/**
 * Reads a Word document as Word shows it with all changes accepted: numbers of lists and headings, notes, text boxes,
 * headers and footers once. mammoth reads the body if it contains only what mammoth supports. If the XML is corrupted,
 * mammoth reads what it can, and the document gets the warning `structure_lost`.
 * @throws {ParseFailure} `corrupt` if mammoth cannot read the document either.
 * @throws {ParseFailure} `limit_exceeded` if the document exceeds a limit.
 */
export async function readDocx(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<void> {
  try {
    await readWhole(bytes, builder, limits)
  } catch (error) {
    if (!(error instanceof ParseFailure) || error.code !== 'corrupt') throw error
    builder.startAgain()
    await readCorruptedDocx(bytes, builder, limits)
    const message = 'The XML of the Word document is corrupted: numbers of lists and headings, headers and footers may be missing.'
    if (!builder.isEmpty) builder.warn('structure_lost', message)
  }
}

async function readWhole(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<void> {
  const parts = new OfficePackage(bytes, limits)
  const main =
    (await parts.relatedPart('', 'officeDocument')) ??
    parts.archive.names.find((name) => /^word\/document\d*\.xml$/.test(name)) ??
    'word/document.xml'
  const tree = async (type: string) => {
    const part = await parts.relatedPart(main, type)
    return part === undefined ? undefined : await parts.read(part)
  }
  const notes = { footnotes: readNotes(await tree('footnotes')), endnotes: readNotes(await tree('endnotes')) }
  const styles = readStyles(await tree('styles'))
  const reader = new WordReader(builder, styles, new WordNumbering(await tree('numbering')), notes)
  const related = [...(await parts.readRelationships(main)).values()].filter(({ part }) => parts.archive.has(part))
  const margins = async (type: string) => {
    for (const { part } of related.filter((each) => each.type === type)) reader.readMargin(await parts.read(part))
  }
  await margins('header')
  const plain = await readPlainBody(parts.archive, main, styles, limits)
  if (plain) addPlainBody(plain, styles, builder)
  else await readXml(parts.archive.piecesOf(main), limits, (element) => reader.read(element), { units: UNITS, without: FALLBACKS })
  reader.end()
  await margins('footer')
}

type Notes = Readonly<Record<'footnotes' | 'endnotes', ReadonlyMap<string, XmlElement>>>

function readNotes(root: XmlElement | undefined): ReadonlyMap<string, XmlElement> {
  return new Map((root ? listChildren(root) : []).map((note) => [findAttribute(note, 'id') ?? '', note]))
}

class WordReader {
  readonly #builder: DocumentBuilder
  readonly #styles: ReadonlyMap<string, WordStyle>
  readonly #numbering: WordNumbering
  readonly #notes: Notes
  readonly #margins = new Set<string>()
  #noteNumber = 0
  /** The notes and text boxes of the current paragraph or table. They are added after it. */
  #asides: (readonly [number: number, element: XmlElement])[] = []
  /** The text of paragraphs whose end was deleted. The next paragraph continues it. */
  #open = ''

  constructor(builder: DocumentBuilder, styles: ReadonlyMap<string, WordStyle>, numbering: WordNumbering, notes: Notes) {
    this.#builder = builder
    this.#styles = styles
    this.#numbering = numbering
    this.#notes = notes
  }

  read(element: XmlElement): void {
    if (element.name === 'p') this.#readParagraph(element)
    else if (element.name === 'tbl') this.#readTable(element)
    else if (!NOT_TEXT.has(element.name)) for (const child of listChildren(element)) this.read(child)
  }

  end(): void {
    this.#builder.add('paragraph', this.#open)
    this.#open = ''
  }

  /** Reads a header or footer. Adds each different line once, and omits lines with page numbers. */
  readMargin(root: XmlElement): void {
    for (const paragraph of listDescendants(root, 'p')) {
      const codes = [...listDescendants(paragraph, 'instrText')].map(textIn).join(' ')
      const fields = [...listDescendants(paragraph, 'fldSimple')].map((field) => findAttribute(field, 'instr') ?? '').join(' ')
      const text = this.#readText(paragraph).trim()
      this.#asides = []
      if (/\b(?:PAGE|NUMPAGES|SECTIONPAGES)\b/i.test(`${codes} ${fields}`) || this.#margins.has(text)) continue
      this.#margins.add(text)
      this.#builder.add('paragraph', text)
    }
  }

  #readParagraph(paragraph: XmlElement): void {
    const properties = findChild(paragraph, 'pPr')
    const style = this.#readStyle(properties)
    const text = this.#open + this.#readText(paragraph)
    this.#open = ''
    if (findChild(findChild(properties, 'rPr'), 'del')) {
      this.#open = text
      return
    }
    const label = text.trim() === '' ? undefined : this.#nextLabel(properties, style)
    const kind = style.heading ? 'heading' : label === undefined ? 'paragraph' : 'list_item'
    this.#builder.add(kind, label ? `${label} ${text}` : text, style.heading ? { level: style.heading } : {})
    this.#readAsides()
  }

  #readAsides(): void {
    const asides = this.#asides
    this.#asides = []
    for (const [number, element] of asides) {
      if (number === 0) this.read(element)
      else this.#builder.add('paragraph', `[${number}] ${this.#joinLines(element)}`)
    }
  }

  #readStyle(properties: XmlElement | undefined): WordStyle & { readonly id: string } {
    const id = valueIn(properties, 'pStyle') ?? ''
    return { ...this.#styles.get(id), ...readFacts(properties), id }
  }

  /** Returns the number of the paragraph, or undefined if it is not in a list. */
  #nextLabel(properties: XmlElement | undefined, { id, list, level }: WordStyle & { readonly id: string }): string | undefined {
    if (list === undefined || list === '0') return undefined
    const own = integer(valueIn(findChild(properties, 'numPr'), 'ilvl'))
    return this.#numbering.next(list, own ?? this.#numbering.levelOfStyle(list, id) ?? level ?? 0)
  }

  #readText(parent: XmlElement): string {
    const parts: string[] = []
    for (const child of parent.children) {
      if (typeof child === 'string' || NOT_TEXT.has(child.name)) continue
      if (child.name === 't') parts.push(textIn(child))
      else if (child.name === 'txbxContent') this.#asides.push([0, { ...child, name: 'box' }])
      else if (Object.hasOwn(NOTES, child.name)) parts.push(this.#noteMark(child))
      else if (child.name === 'r' && isOn(findChild(findChild(child, 'rPr'), 'vanish'))) continue
      else parts.push(CHARACTERS.get(child.name) ?? this.#readText(child))
    }
    return parts.join('')
  }

  #noteMark(reference: XmlElement): string {
    const notes = this.#notes[NOTES[reference.name as keyof typeof NOTES]]
    const note = notes.get(findAttribute(reference, 'id') ?? '')
    if (!note) return ''
    this.#noteNumber += 1
    this.#asides.push([this.#noteNumber, note])
    return `[${this.#noteNumber}]`
  }

  /** Returns all paragraphs of an element on one line, with their numbers. */
  #joinLines(parent: XmlElement): string {
    const lines: string[] = []
    const read = (element: XmlElement) => {
      for (const child of listChildren(element)) {
        if (child.name === 'p') {
          const properties = findChild(child, 'pPr')
          const text = this.#readText(child).trim()
          const label = text === '' ? undefined : this.#nextLabel(properties, this.#readStyle(properties))
          lines.push(label ? `${label} ${text}` : text)
        } else if (!NOT_TEXT.has(child.name)) read(child)
      }
    }
    read(parent)
    return lines
      .join(' ')
      .replace(/[\s\u2028]+/g, ' ')
      .trim()
  }

  #readTable(table: XmlElement): void {
    const rows = [...listRows(table)]
    const isLayout = rows.every((row) => listCells(row).length <= 1)
    if (isLayout) for (const row of rows) for (const cell of listCells(row)) this.read(cell)
    else {
      const cells = rows.map((row) =>
        listCells(row).map((cell): TableCell => this.#readCell(cell, isOn(findChild(findChild(row, 'trPr'), 'tblHeader')))),
      )
      addTable(cells, this.#builder)
    }
    this.#readAsides()
  }

  #readCell(cell: XmlElement, isHeader: boolean): TableCell {
    const properties = findChild(cell, 'tcPr')
    const merged = findChild(properties, 'vMerge')
    return {
      text: this.#joinLines(cell),
      columns: integer(valueIn(properties, 'gridSpan')) ?? 1,
      goesOn: merged !== undefined && (findAttribute(merged, 'val') ?? 'continue') === 'continue',
      isHeader,
    }
  }
}

/** Yields a table's rows, including those in content controls. Omits deleted rows. */
function* listRows(parent: XmlElement): Generator<XmlElement> {
  for (const child of listChildren(parent)) {
    if (child.name === 'tr' && !findChild(findChild(child, 'trPr'), 'del')) yield child
    else if (child.name === 'sdt' || child.name === 'sdtContent' || child.name === 'ins') yield* listRows(child)
  }
}

function listCells(row: XmlElement): readonly XmlElement[] {
  return listChildren(row).flatMap((child) => {
    if (child.name === 'tc') return findChild(findChild(child, 'tcPr'), 'cellDel') ? [] : [child]
    return child.name === 'sdt' || child.name === 'sdtContent' ? listCells(child) : []
  })
}
