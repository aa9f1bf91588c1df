import type { BlockFacts, DocumentBuilder } from '../readers/document-builder.ts'

export interface TableCell {
  readonly text: string
  /** Columns that it lies over; 1 where it is not said. */
  readonly columns?: number
  /** Rows that it lies over, in formats that say so; 1 where it is not said. */
  readonly rows?: number
  /** True of a cell that goes on with the one above it, in formats that say so. */
  readonly goesOn?: boolean
  readonly isHeader?: boolean
}

/** Rows under a header row that nobody marked, below which the first row is taken for data like the others. */
const LEAST_ROWS_FOR_GUESS = 3
const MAX_GUESSED_CELL_CHARS = 60
/** Columns of a table; cells beyond are read, and no cell is repeated beyond. */
const MAX_COLUMNS = 200
/** Merged cells hold labels; a long text is not said again. */
const MAX_REPEATED_CHARS = 200

interface Cell {
  readonly text: string
  readonly isHeader: boolean
}

/**
 * One block a row, cells between ` | `; rows below the header rows carry their text. Merged cells are repeated where they lie, so that each row
 * can be read by itself, but a cell over a whole row says its text once.
 */
export function addTable(table: readonly (readonly TableCell[])[], builder: DocumentBuilder, facts: BlockFacts = {}): void {
  const rows = spread(table).filter((row) => row.some(({ text }) => text !== ''))
  let headerRows = rows.findIndex((row) => !row.every(({ isHeader }) => isHeader))
  if (headerRows <= 0) headerRows = headerRows === 0 && looksLikeHeader(rows) ? 1 : 0
  const tableHeader = rows.slice(0, headerRows).map(lineOf).join('\n')
  rows.forEach((row, index) => {
    builder.add('table_row', lineOf(row), index >= headerRows && tableHeader !== '' ? { ...facts, tableHeader } : facts)
  })
}

/** The cells of each row as they lie in the table. */
function spread(table: readonly (readonly TableCell[])[]): readonly (readonly Cell[])[] {
  /** Per column: what lies over rows to come. */
  const above: ({ readonly cell: Cell; left: number } | undefined)[] = []
  let previous: readonly Cell[] = []
  const widest = Math.min(MAX_COLUMNS, widthOf(table))
  return table.map((row) => {
    const cells: Cell[] = []
    const takeAbove = () => {
      for (let over = above[cells.length]; over && over.left > 0; over = above[cells.length]) {
        over.left -= 1
        cells.push(over.cell)
      }
    }
    for (const { text, columns = 1, rows = 1, goesOn = false, isHeader = false } of row) {
      takeAbove()
      const column = cells.length
      const own: Cell = goesOn && text === '' ? (previous[column] ?? { text, isHeader }) : { text, isHeader }
      const again: Cell = own.text.length <= MAX_REPEATED_CHARS ? own : { ...own, text: '' }
      const span = Math.min(bounded(columns), MAX_COLUMNS - column)
      const isWholeRow = row.length === 1 && span >= widest
      cells.push(own)
      for (let at = 1; at < span && !isWholeRow; at += 1) cells.push(again)
      const left = bounded(rows) - 1
      if (left > 0) for (let at = column; at < cells.length && at < MAX_COLUMNS; at += 1) above[at] = { cell: again, left }
    }
    takeAbove()
    previous = cells
    return cells
  })
}

function widthOf(table: readonly (readonly TableCell[])[]): number {
  let widest = 0
  for (const row of table) {
    const width = row.reduce((sum, { columns = 1 }) => sum + bounded(columns), 0)
    widest = Math.max(widest, width)
  }
  return widest
}

function bounded(span: number): number {
  return Number.isSafeInteger(span) && span > 0 ? span : 1
}

/**
 * Word tables seldom mark their header row: a first row of short, different words above further rows is taken for one;
 * its corner may be empty.
 */
function looksLikeHeader(rows: readonly (readonly Cell[])[]): boolean {
  const [first] = rows
  if (!first || rows.length < LEAST_ROWS_FOR_GUESS || first.length < 2) return false
  const texts = first.map(({ text }) => text)
  return (
    new Set(texts).size === texts.length &&
    texts.every((text, index) => (text !== '' || index === 0) && text.length <= MAX_GUESSED_CELL_CHARS && !/\p{Nd}{3}/u.test(text))
  )
}

function lineOf(row: readonly Cell[]): string {
  return row.map(({ text }) => text).join(' | ')
}
