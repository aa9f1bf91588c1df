import { detectLanguage, type Language, toTerms } from './language.ts'
import { splitSentences } from './sentences.ts'
import type { Passage } from './sources.ts'

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
/** Columns of a row that are shown, and the length of one that can be a header, in UTF-16 units. */
const MAX_COLUMNS = 12
const MAX_HEADER_CHARACTERS = 60
/** Longest text of a row: the embedding model reads about as much. */
const MAX_ROW_CHARACTERS = 600

/** Each sentence and row once, in order. Questions are not answers. */
export function findCandidates(context: readonly Passage[]): readonly Candidate[] {
  const parts = context.flatMap(readParts)
  const headers = new Map(parts.flatMap(({ columns, header }) => (header ? [[columns, header] as const] : [])))
  const candidates = new Map<string, Candidate>()
  for (const { passage, file, text, columns, isFirst, rows, ...own } of parts) {
    const add = (sentence: string, row?: readonly Cell[]) => {
      const terms = new Set(toTerms(sentence))
      const isHeading = terms.size < (FULL_STOP.test(sentence) ? 1 : LEAST_TERMS)
      if (candidates.has(sentence) || (!row && (isHeading || QUESTION_MARK.test(sentence)))) return
      const language = detectLanguage(sentence)
      candidates.set(sentence, { text: sentence, source: passage.source, file, language, terms, ...(row && { row }) })
    }
    for (const sentence of splitSentences(text)) add(sentence)
    // A chunk that begins further down in a table has the header of the chunk with the table's beginning.
    const header = own.header ?? (isFirst ? headers.get(columns) : undefined)
    for (const cells of rows) {
      const row = cells.map((value, column) => ({ header: header?.[column] ?? '', value }))
      add(rowText(row, detectLanguage(cells.join(' '))), row)
    }
  }
  return [...candidates.values()]
}

/** `City: Jeddah, People: 4 million`. */
export function rowText(cells: readonly Cell[], language: Language): string {
  return cells
    .filter(({ value }) => value !== '')
    .slice(0, MAX_COLUMNS)
    .map(({ header, value }) => (header === '' || header === value ? value : `${header}: ${value}`))
    .join(language === 'ar' ? '، ' : ', ')
    .slice(0, MAX_ROW_CHARACTERS)
}

/** A table of a passage, or the text between two. */
interface Part {
  readonly passage: Passage
  readonly isFirst: boolean
  readonly file: string | null
  readonly text: string
  readonly header: readonly string[] | null
  /** Below the header. */
  readonly rows: readonly (readonly string[])[]
  /** Tables that are alike in it have one header: those of a file with so many columns. */
  readonly columns: string
}

function readParts(passage: Passage): readonly Part[] {
  const name = passage.file ?? passage.source
  const file = name?.split(', ')[0] ?? null
  const parts: { readonly isTable: boolean; readonly lines: string[] }[] = []
  for (const line of passage.text.split('\n')) {
    const isTable = line.includes(' | ') || /^\|.*\|$/.test(line.trim())
    if (parts.at(-1)?.isTable !== isTable) parts.push({ isTable, lines: [] })
    parts.at(-1)!.lines.push(line)
  }
  return parts.map(({ isTable, lines }, index) => {
    const isFirst = index === 0
    const rows = isTable ? lines.map(readCells).filter((cells) => !cells.every((cell) => /^:?-*:?$/.test(cell))) : []
    const [first = []] = rows
    const hasHeader = rows.length > 1 && looksLikeHeader(first) && !(isFirst && beginsBelowHeader(name ?? ''))
    const text = isTable ? '' : lines.join('\n')
    const own = hasHeader ? { header: first, rows: rows.slice(1) } : { header: null, rows }
    return { passage, isFirst, file, text, columns: `${file} ${first.length}`, ...own }
  })
}

function readCells(line: string): readonly string[] {
  const cells = line.trim().replace(/^\|/, '').replace(/\|$/, '').split('|')
  return cells.map((cell) => cell.trim())
}

/** Sheets and data files say in which row a passage begins: `sales.xlsx, A41:D80`, `sales.csv, row 41–80`. */
function beginsBelowHeader(file: string): boolean {
  const first = /, (?:[A-Z]{1,3}|row )(\d{1,7})(?:[:–][A-Z\d]{1,10})?$/.exec(file)?.[1]
  return first !== undefined && first !== '1'
}

/** Short, different words, of which only the first may be missing. Numbers are years. */
function looksLikeHeader(cells: readonly string[]): boolean {
  return (
    cells.length > 1 &&
    new Set(cells).size === cells.length &&
    cells.every((cell, column) => (cell !== '' || column === 0) && cell.length <= MAX_HEADER_CHARACTERS) &&
    cells.every((cell) => /\p{L}/u.test(cell) || cell === '' || /^(?:19|20|١٩|٢٠)\p{Nd}{2}$/u.test(cell)) &&
    cells.some((cell) => /\p{L}/u.test(cell))
  )
}
