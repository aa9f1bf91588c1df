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
  const candidates = new Map<string, Candidate>()
  const headers = new Map<string, readonly string[]>()
  const add = (text: string, passage: Passage, row?: readonly Cell[]) => {
    const terms = new Set(toTerms(text))
    const isHeading = !row && terms.size < (FULL_STOP.test(text) ? 1 : LEAST_TERMS)
    if (isHeading || (!row && QUESTION_MARK.test(text)) || candidates.has(text)) return
    candidates.set(text, {
      text,
      source: passage.source,
      file: fileOf(passage)?.split(', ')[0] ?? null,
      language: detectLanguage(text),
      terms,
      ...(row && { row }),
    })
  }
  // First passages that begin at the first row, so that their headers are known to those that begin further down.
  const inOrder = context.toSorted((a, b) => Number(startsBelowHeader(a)) - Number(startsBelowHeader(b)))
  const rowsOf = new Map(inOrder.map((passage) => [passage, readTables(passage, headers)]))
  for (const passage of context) {
    for (const part of rowsOf.get(passage)!) {
      if (typeof part === 'string') for (const sentence of splitSentences(part)) add(sentence, passage)
      else add(rowText(part, detectLanguage(part.map(({ value }) => value).join(' '))), passage, part)
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

/** The texts of a passage and its rows, in order. A header row is in each row below it, and is none itself. */
function readTables(passage: Passage, headers: Map<string, readonly string[]>): readonly (string | readonly Cell[])[] {
  const parts: (string | readonly Cell[])[] = []
  let table: string[][] = []
  let text: string[] = []
  const endText = () => {
    if (text.length > 0) parts.push(text.join('\n'))
    text = []
  }
  const endTable = () => {
    const [first] = table
    if (!first) return
    const key = `${fileOf(passage)?.split(', ')[0]} ${first.length}`
    const isCut = parts.length === 0 && startsBelowHeader(passage)
    const own = !isCut && table.length > 1 && looksLikeHeader(first) ? first : undefined
    if (own) headers.set(key, own)
    const header = own ?? (parts.length === 0 ? headers.get(key) : undefined)
    for (const row of own ? table.slice(1) : table) parts.push(row.map((value, column) => ({ header: header?.[column] ?? '', value })))
    table = []
  }
  for (const line of passage.text.split('\n')) {
    const cells = line.includes(' | ') || /^\|.*\|$/.test(line.trim()) ? readCells(line) : null
    if (!cells) {
      endTable()
      text.push(line)
    } else if (!cells.every((cell) => /^:?-*:?$/.test(cell))) {
      endText()
      table.push(cells)
    }
  }
  endTable()
  endText()
  return parts
}

function fileOf({ file, source }: Passage): string | null {
  return file ?? source
}

function readCells(line: string): string[] {
  return line
    .trim()
    .replace(/^\|/, '')
    .replace(/\|$/, '')
    .split('|')
    .map((cell) => cell.trim())
}

/** Sheets and data files say in which row a passage begins: `sales.xlsx, A41:D80`, `sales.csv, row 41–80`. */
function startsBelowHeader(passage: Passage): boolean {
  const first = /, (?:[A-Z]{1,3}|row )(\d{1,7})(?:[:–][A-Z\d]{1,10})?$/.exec(fileOf(passage) ?? '')?.[1]
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
