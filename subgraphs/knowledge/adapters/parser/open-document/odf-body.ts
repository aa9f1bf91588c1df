import type { BlockFacts, DocumentBuilder } from '../readers/document-builder.ts'
import { addTable, type TableCell } from '../tables/add-table.ts'
import { findAttribute, findChild, listChildren, type XmlElement } from '../xml/xml.ts'
import { type ListLevels, ListNumbers, MAX_LEVELS, readInteger } from './odf-lists.ts'
import { isText, joinLine } from './odf-text.ts'

/** The styles of a document that affect its text. */
export interface OdfStyles {
  readonly lists: ReadonlyMap<string, ListLevels>
  readonly headings: ListLevels
  /** Names of the paragraph styles of titles. */
  readonly titles: ReadonlySet<string>
}

/** Elements of a table that contain rows. */
const ROW_GROUPS = new Set(['table-header-rows', 'table-rows', 'table-row-group'])

/** Reads paragraphs, headings, lists and tables in document order. */
export class OdfBody {
  readonly #builder: DocumentBuilder
  readonly #styles: OdfStyles
  readonly #facts: BlockFacts
  readonly #headings: ListNumbers
  /** The last list of each style. A later list may continue it. */
  readonly #lists = new Map<string, ListNumbers>()

  constructor(builder: DocumentBuilder, styles: OdfStyles, facts: BlockFacts = {}) {
    this.#builder = builder
    this.#styles = styles
    this.#facts = facts
    this.#headings = new ListNumbers(styles.headings)
  }

  read(parent: XmlElement): void {
    for (const element of listChildren(parent)) {
      if (!isText(element)) continue
      if (element.name === 'h') this.#readHeading(element)
      else if (element.name === 'p') this.#readParagraph(element)
      else if (element.name === 'list') this.#readList(element)
      else if (element.name === 'table') addTable([...this.#rowsOf(element, false)], this.#builder, this.#facts)
      else this.read(element)
    }
  }

  #readHeading(element: XmlElement): void {
    const level = readInteger(findAttribute(element, 'outline-level')) ?? 1
    const isNumbered = findAttribute(element, 'is-list-header') !== 'true' && level <= MAX_LEVELS
    const restartAt =
      findAttribute(element, 'restart-numbering') === 'true' ? (readInteger(findAttribute(element, 'start-value')) ?? 1) : undefined
    const number = isNumbered ? this.#headings.next(Math.max(1, level), restartAt) : ''
    this.#addLine(element, 'heading', number, { level: Math.min(6, Math.max(1, level)) })
  }

  #readParagraph(element: XmlElement): void {
    const isTitle = this.#styles.titles.has(findAttribute(element, 'style-name') ?? '')
    this.#addLine(element, isTitle ? 'heading' : 'paragraph', '', isTitle ? { level: 1 } : {})
  }

  #addLine(element: XmlElement, kind: 'heading' | 'paragraph' | 'list_item', number: string, facts: BlockFacts): void {
    const asides: XmlElement[] = []
    const notes: string[] = []
    const line = joinLine(element, (aside) => {
      if (aside.kind === 'box') asides.push(aside.element)
      else notes.push(readNote(aside.element))
    })
    this.#builder.add(kind, number === '' ? line : `${number} ${line}`, { ...this.#facts, ...facts })
    for (const note of notes) this.#builder.add('paragraph', note, this.#facts)
    for (const box of asides) this.read(box)
  }

  #readList(list: XmlElement, outer?: { readonly numbers: ListNumbers; readonly level: number }): void {
    const level = (outer?.level ?? 0) + 1
    const name = findAttribute(list, 'style-name') ?? ''
    const goesOn = findAttribute(list, 'continue-numbering') === 'true' || findAttribute(list, 'continue-list') !== undefined
    const numbers =
      outer?.numbers ?? (goesOn ? this.#lists.get(name) : undefined) ?? new ListNumbers(this.#styles.lists.get(name) ?? new Map())
    if (!outer) this.#lists.set(name, numbers)
    for (const item of listChildren(list)) {
      if (item.name !== 'list-item' && item.name !== 'list-header') continue
      let number = ''
      // An item that contains only a list is a deeper level, and is not counted.
      const holdsText = listChildren(item).some((child) => child.name === 'p' || child.name === 'h')
      if (item.name === 'list-item' && holdsText && level <= MAX_LEVELS)
        number = numbers.next(level, readInteger(findAttribute(item, 'start-value')))
      for (const child of listChildren(item)) {
        if (child.name === 'list') this.#readList(child, { numbers, level })
        else if (child.name === 'h') this.#addLine(child, 'heading', number, { level: Math.min(6, level) })
        else if (child.name === 'p') this.#addLine(child, 'list_item', number, {})
        else this.read(child)
        if (child.name === 'h' || child.name === 'p') number = ''
      }
    }
  }

  *#rowsOf(parent: XmlElement, isHeader: boolean): Generator<readonly TableCell[]> {
    for (const element of listChildren(parent)) {
      if (ROW_GROUPS.has(element.name)) yield* this.#rowsOf(element, isHeader || element.name === 'table-header-rows')
      if (element.name === 'table-row')
        yield listChildren(element)
          .filter(({ name }) => name === 'table-cell')
          .map((cell) => ({
            text: cellText(cell),
            columns: readInteger(findAttribute(cell, 'number-columns-spanned')) ?? 1,
            rows: readInteger(findAttribute(cell, 'number-rows-spanned')) ?? 1,
            isHeader,
          }))
    }
  }
}

/** Formats a note as `[1] The text of the note.` */
function readNote(note: XmlElement): string {
  const citation = findChild(note, 'note-citation')
  const body = findChild(note, 'note-body')
  return `[${citation ? joinLine(citation) : ''}] ${body ? cellText(body) : ''}`
}

/** Returns all paragraphs of a cell on one line, including those of lists and tables. */
function cellText(cell: XmlElement): string {
  const parts: string[] = []
  const read = (parent: XmlElement) => {
    for (const element of listChildren(parent)) {
      if (element.name === 'p' || element.name === 'h') parts.push(joinLine(element))
      else if (isText(element)) read(element)
    }
  }
  read(cell)
  return parts
    .join(' ')
    .replace(/[\s\u2028]+/g, ' ')
    .trim()
}
