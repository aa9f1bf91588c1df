import type { BlockFacts, DocumentBuilder } from '../readers/document-builder.ts'

export interface TableCell {
  readonly text: string
  /** The number of columns that the cell covers; 1 by default. */
  readonly columns?: number
  /** The number of rows that the cell covers; 1 by default. */
  readonly rows?: number
  /** True if the cell continues the one above it. */
  readonly goesOn?: boolean
  readonly isHeader?: boolean
}

/** The least number of rows of a table whose first row can be taken for a header without a mark. */
const LEAST_ROWS_FOR_GUESS = 3
const MAX_GUESSED_CELL_CHARS = 60
/** The number of columns over which merged cells are repeated. Cells beyond are read, but not repeated. */
const MAX_COLUMNS = 200
/** The longest text of a merged cell that is repeated. Merged cells are labels; a longer text is not repeated. */
const MAX_REPEATED_CHARS = 200

interface Cell {
  readonly text: string
  readonly isHeader: boolean
}

/**
 * Adds a table. Each row is a block with its cells between ` | `, and rows below the header rows carry the header's
 * text. A merged cell is repeated in each place that it covers, so that each row can be read alone. A cell that covers
 * a whole row is not repeated.
 */
export function addTable(table: readonly (readonly TableCell[])[], builder: DocumentBuilder, facts: BlockFacts = {}): void {
  const rows = spread(table).filter((row) => row.some(({ text }) => text !== ''))
  let headerRows = rows.findIndex((row) => !row.every(({ isHeader }) => isHeader))
  if (headerRows <= 0) headerRows = headerRows === 0 && looksLikeHeader(rows) ? 1 : 0
  const tableHeader = rows.slice(0, headerRows).map(toLine).join('\n')
  rows.forEach((row, index) => {
    builder.add('table_row', toLine(row), index >= headerRows && tableHeader !== '' ? { ...facts, tableHeader } : facts)
  })
}

/** Returns the cells of each row with merged cells in every place that they cover. */
function spread(table: readonly (readonly TableCell[])[]): readonly (readonly Cell[])[] {
  /** By column, the cell that covers the next rows too. */
  const above: ({ readonly cell: Cell; left: number } | undefined)[] = []
  let previous: readonly Cell[] = []
  const widest = Math.min(MAX_COLUMNS, countColumns(table))
  return table.map((row) => {
    const cells: Cell[] = []
    const addSpannedCells = () => {
      for (let over = above[cells.length]; over && over.left > 0; over = above[cells.length]) {
        over.left -= 1
        cells.push(over.cell)
      }
    }
    for (const { text, columns = 1, rows = 1, goesOn = false, isHeader = false } of row) {
      addSpannedCells()
      const column = cells.length
      const own: Cell = goesOn && text === '' ? (previous[column] ?? { text, isHeader }) : { text, isHeader }
      const again: Cell = own.text.length <= MAX_REPEATED_CHARS ? own : { ...own, text: '' }
      const span = Math.min(validSpan(columns), MAX_COLUMNS - column)
      const isWholeRow = row.length === 1 && span >= widest
      cells.push(own)
      for (let at = 1; at < span && !isWholeRow; at += 1) cells.push(again)
      const left = validSpan(rows) - 1
      if (left > 0) for (let at = column; at < cells.length && at < MAX_COLUMNS; at += 1) above[at] = { cell: again, left }
    }
    addSpannedCells()
    previous = cells
    return cells
  })
}

function countColumns(table: readonly (readonly TableCell[])[]): number {
  let widest = 0
  for (const row of table) {
    const width = row.reduce((sum, { columns = 1 }) => sum + validSpan(columns), 0)
    widest = Math.max(widest, width)
  }
  return widest
}

function validSpan(span: number): number {
  return Number.isSafeInteger(span) && span > 0 ? span : 1
}

/**
 * Reports whether the first row looks like a header, because Word tables seldom mark theirs: it is above other rows and
 * has short, different words. Its first cell may be empty.
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

function toLine(row: readonly Cell[]): string {
  return row.map(({ text }) => text).join(' | ')
}
