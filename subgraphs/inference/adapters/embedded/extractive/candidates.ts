import { detectLanguage, type Language, toTerms } from './language.ts'
import { splitSentences } from './sentences.ts'
import type { Excerpt } from './sources.ts'

/** A sentence of the context, or a row of a table, which can be the answer. */
export interface Candidate {
  readonly text: string
  readonly source: string | null
  /** The file, as the context names it, without a place; null if it does not. */
  readonly file: string | null
  readonly language: Language
  readonly terms: ReadonlySet<string>
  /** The cells of a row with the headers of their columns, '' where none is known. */
  readonly row?: readonly Cell[]
}

interface Cell {
  readonly header: string
  readonly value: string
}

/** Text with fewer terms and no full stop is a heading or a page number. */
const LEAST_TERMS = 3
const FULL_STOP = /[.!؛:]["”»)]?$/
const QUESTION_MARK = /[?؟]["”»)]?$/
const TABLE_LINE = / \| |^\s*\|.*\|\s*$/
/** Sheets and data files say in which row a passage begins: `sales.xlsx, A41:D80`, `sales.csv, row 41–80`. */
const FIRST_ROW = /, (?:[A-Z]{1,3}|row )(\d{1,7})(?:[:–][A-Z\d]{1,10})?$/
/** A word, or a year. */
const HEADER_CELL = /\p{L}|^(?:19|20|١٩|٢٠)\p{Nd}{2}$/u
const MAX_HEADER_CHARACTERS = 60
const MAX_COLUMNS = 12
/** Longest text of a row: the embedding model reads about as much. */
const MAX_ROW_CHARACTERS = 600

/** Each sentence and row once, in order. Questions are not answers. */
export function findCandidates(context: readonly Excerpt[]): readonly Candidate[] {
  const parts = context.flatMap(readParts)
  // A chunk that begins further down in a table has the header of the chunk with the table's beginning.
  const headers = new Map(parts.flatMap(({ table, header }) => (header ? [[table, header] as const] : [])))
  const candidates = new Map<string, Candidate>()
  for (const { source, file, text, rows, table, header, isFirst } of parts) {
    const add = (own: string, row?: readonly Cell[]) => {
      const terms = new Set(toTerms(own))
      const isHeading = terms.size < (FULL_STOP.test(own) ? 1 : LEAST_TERMS)
      if (candidates.has(own) || (!row && (isHeading || QUESTION_MARK.test(own)))) return
      candidates.set(own, { text: own, source, file, language: detectLanguage(own), terms, ...(row && { row }) })
    }
    for (const sentence of splitSentences(text)) add(sentence)
    const names = header ?? (isFirst ? headers.get(table) : undefined)
    for (const cells of rows) {
      const row = cells.map((value, column) => ({ header: names?.[column] ?? '', value }))
      add(rowText(row), row)
    }
  }
  return [...candidates.values()]
}

/** `City: Jeddah, People: 4 million`. */
export function rowText(row: readonly Cell[]): string {
  const cells = row.filter(({ value }) => value !== '').slice(0, MAX_COLUMNS)
  const separator = commaOf(detectLanguage(cells.map(({ value }) => value).join(' ')))
  const texts = cells.map(({ header, value }) => (header === '' || header === value ? value : `${header}: ${value}`))
  return texts.join(separator).slice(0, MAX_ROW_CHARACTERS)
}

export function commaOf(language: Language): string {
  return language === 'ar' ? '، ' : ', '
}

/** A table of a passage, or the text between two. */
interface Part {
  readonly source: string | null
  readonly file: string | null
  readonly isFirst: boolean
  readonly text: string
  /** Below the header. */
  readonly rows: readonly (readonly string[])[]
  readonly header: readonly string[] | undefined
  /** Tables that are alike in it have one header: those of a file with so many columns. */
  readonly table: string
}

function readParts({ text: whole, source, file: name = source ?? '' }: Excerpt): readonly Part[] {
  const file = name.split(', ')[0] || null
  const parts: { readonly isTable: boolean; readonly lines: string[] }[] = []
  for (const line of whole.split('\n')) {
    const isTable = TABLE_LINE.test(line)
    if (parts.at(-1)?.isTable !== isTable) parts.push({ isTable, lines: [] })
    parts.at(-1)!.lines.push(line)
  }
  return parts.map(({ isTable, lines }, index) => {
    const isFirst = index === 0
    const rows = isTable ? lines.map(readCells).filter((cells) => !cells.every((cell) => /^:?-*:?$/.test(cell))) : []
    const [first = []] = rows
    const isBelow = isFirst && Number(FIRST_ROW.exec(name)?.[1] ?? 1) > 1
    const header = !isBelow && rows.length > 1 && isHeader(first) ? first : undefined
    const text = isTable ? '' : lines.join('\n')
    return { source, file, isFirst, text, rows: header ? rows.slice(1) : rows, header, table: `${file} ${first.length}` }
  })
}

function readCells(line: string): readonly string[] {
  return line
    .trim()
    .replace(/^\|/, '')
    .replace(/\|$/, '')
    .split('|')
    .map((cell) => cell.trim())
}

/** Short words, of which only the first may be missing. */
function isHeader(cells: readonly string[]): boolean {
  const isName = (cell: string, column: number) => (cell === '' && column === 0) || HEADER_CELL.test(cell)
  return cells.length > 1 && cells.every((cell, column) => isName(cell, column) && cell.length <= MAX_HEADER_CHARACTERS)
}
