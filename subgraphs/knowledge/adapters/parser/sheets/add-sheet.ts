import type { BlockLocation } from '../../../ports/document-parser.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'

export interface SheetCell {
  /** Counted from 0. */
  readonly column: number
  /** The displayed text. */
  readonly text: string
  /** False for numbers, dates and similar values. */
  readonly isText: boolean
}

/** The filled cells of a row, in the order of their columns. */
export interface SheetRow {
  /** Counted from 1. */
  readonly number: number
  readonly cells: readonly SheetCell[]
}

/** Returns the location of cells in a row, such as `Sales!A2:D2` in a sheet. */
type LocationOf = (row: number, firstColumn: number, lastColumn: number) => BlockLocation

const MAX_HEADER_CELL_CHARS = 100

/**
 * Adds the tables of a sheet, which empty rows separate. A single cell above a table is a paragraph. Each row is a
 * block with the header row of its table. A part below an empty row without its own header uses the previous header.
 */
export function addSheet(rows: readonly SheetRow[], builder: DocumentBuilder, locationOf: LocationOf): void {
  let header: Header | undefined
  for (const region of splitIntoRegions(rows)) {
    const titles = region.findIndex(({ cells }) => cells.length > 1)
    const table = titles < 0 ? [] : region.slice(titles)
    for (const { number, cells } of titles < 0 ? region : region.slice(0, titles)) {
      for (const { column, text } of cells) builder.add('paragraph', text, { location: locationOf(number, column, column) })
    }
    header = addTable(table, header, builder, locationOf)
  }
}

interface Header {
  readonly columns: readonly number[]
  readonly text: string
}

/** Adds the rows of a table. Returns the header that applies to the rows below. */
function addTable(
  rows: readonly SheetRow[],
  before: Header | undefined,
  builder: DocumentBuilder,
  locationOf: LocationOf,
): Header | undefined {
  if (rows.length === 0) return before
  const used = new Set<number>()
  for (const { cells } of rows) for (const { column } of cells) used.add(column)
  const headerRows = countHeaderRows(rows, used.size)
  const goesOn = headerRows === 0 && before !== undefined && [...used].every((column) => before.columns.includes(column))
  const columns = goesOn ? before.columns : [...used].sort((a, b) => a - b)
  const toLine = ({ cells }: SheetRow) => {
    const byColumn = new Map(cells.map(({ column, text }) => [column, text]))
    return columns.map((column) => (byColumn.get(column) ?? '').replace(/\s+/g, ' ').trim()).join(' | ')
  }
  const header = goesOn ? before : headerRows > 0 ? { columns, text: rows.slice(0, headerRows).map(toLine).join('\n') } : undefined
  for (const [index, row] of rows.entries()) {
    const location = locationOf(row.number, columns[0]!, columns.at(-1)!)
    builder.add('table_row', withoutEmptyEnd(toLine(row)), {
      location,
      ...(header && index >= headerRows && { tableHeader: header.text }),
    })
  }
  return header
}

function* splitIntoRegions(rows: readonly SheetRow[]): Generator<readonly SheetRow[]> {
  let start = 0
  for (let end = 1; end <= rows.length; end += 1) {
    if (end < rows.length && rows[end]!.number === rows[end - 1]!.number + 1) continue
    yield rows.slice(start, end)
    start = end
  }
}

/** Returns the number of header rows. It is 2 if the first row groups the columns of the second. */
function countHeaderRows(rows: readonly SheetRow[], columns: number): number {
  const [first, second, third] = rows
  if (!first || !second || !looksLikeHeader(first, columns)) return 0
  const texts = first.cells.map(({ text }) => text)
  const groups = new Set(texts).size < texts.length
  if (groups) return third && second.cells.every(({ isText }) => isText) && looksLikeHeader(second, columns) ? 2 : 1
  return 1
}

/**
 * Reports whether a row looks like a header: it fills at least half of the columns, mostly with short words. Some
 * columns may have a year or a number as their name.
 */
function looksLikeHeader({ cells }: SheetRow, columns: number): boolean {
  const texts = cells.filter(({ isText }) => isText).length
  return cells.length * 2 >= columns && texts * 2 >= cells.length && cells.every(({ text }) => text.length <= MAX_HEADER_CELL_CHARS)
}

function withoutEmptyEnd(line: string): string {
  let end = line.length
  while (line[end - 1] === ' ' || line[end - 1] === '|') end -= 1
  return line.slice(0, end)
}

/** Returns the name of a column: `A`, `Z` and `AA` for 0, 25 and 26. */
function columnName(column: number): string {
  const rest = Math.floor(column / 26) - 1
  return (rest < 0 ? '' : columnName(rest)) + String.fromCharCode(65 + (column % 26))
}

/** Returns the locations of a sheet. The sheet's name is quoted if a formula would have to quote it. */
export function locateCells(sheet: string): LocationOf {
  const within = /^[\p{L}_][\p{L}\p{N}_.]*$/u.test(sheet) ? `${sheet}!` : `'${sheet.replaceAll("'", "''")}'!`
  return (row, first, last) => ({ within, start: `${columnName(first)}${row}`, end: `${columnName(last)}${row}` })
}
