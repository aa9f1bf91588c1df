import type { DefaultTreeAdapterTypes } from 'parse5'
import type { DocumentBuilder } from './document-builder.ts'
import { isElement, isHidden, textOf, walk } from './html-tree.ts'

type Element = DefaultTreeAdapterTypes.Element

interface Row {
  readonly cells: readonly string[]
  readonly isHeader: boolean
}

/** Rows under a header row without `<th>`, below which the first row is taken for data like the others. */
const LEAST_ROWS_FOR_GUESS = 3
const MAX_GUESSED_CELL_CHARS = 60

/** False for tables that only lay out a page: with tables, headings or lists inside, or with one column. They are read as running text. */
export function isDataTable(table: Element): boolean {
  let columns = 0
  let widest = 0
  for (const { node, leaving } of walk(table)) {
    if (leaving || !isElement(node) || node === table) continue
    if (/^(?:table|h[1-6]|pre)$/.test(node.tagName)) return false
    if (node.tagName === 'tr') columns = 0
    if (node.tagName === 'td' || node.tagName === 'th') columns += 1
    widest = Math.max(widest, columns)
  }
  return widest > 1
}

/** One block a row, cells between ` | `; rows below the header row carry its text. */
export function readTable(table: Element, builder: DocumentBuilder): void {
  for (const child of table.childNodes) {
    if (isElement(child) && child.tagName === 'caption') builder.add('paragraph', textOf(child))
  }
  const rows = rowsOf(table)
  let headerRows = rows.findIndex((row) => !row.isHeader)
  if (headerRows <= 0) headerRows = headerRows === 0 && looksLikeHeader(rows) ? 1 : 0
  const tableHeader = rows.slice(0, headerRows).map(lineOf).join('\n')
  rows.forEach((row, index) => {
    builder.add('table_row', lineOf(row), index >= headerRows && tableHeader !== '' ? { tableHeader } : {})
  })
}

function rowsOf(table: Element): readonly Row[] {
  const rows: Row[] = []
  let inHead = false
  for (const { node, leaving, skip } of walk(table)) {
    if (!isElement(node)) continue
    if (!leaving && node !== table && isHidden(node)) skip()
    else if (node.tagName === 'thead') inHead = !leaving
    else if (node.tagName === 'tr' && !leaving) {
      const cells = node.childNodes.filter(isElement).filter((cell) => !isHidden(cell) && (cell.tagName === 'td' || cell.tagName === 'th'))
      const isHeader = inHead || (cells.length > 0 && cells.every(({ tagName }) => tagName === 'th'))
      const texts = cells.map((cell) => textOf(cell))
      if (texts.some((text) => text !== '')) rows.push({ cells: texts, isHeader })
      skip()
    }
  }
  return rows
}

/** Word tables seldom mark their header row: a first row of short, different words above further rows is taken for one; its corner may be empty. */
function looksLikeHeader(rows: readonly Row[]): boolean {
  const [first] = rows
  if (!first || rows.length < LEAST_ROWS_FOR_GUESS || first.cells.length < 2) return false
  return (
    new Set(first.cells).size === first.cells.length &&
    first.cells.every((cell, index) => (cell !== '' || index === 0) && cell.length <= MAX_GUESSED_CELL_CHARS && !/\p{Nd}{3}/u.test(cell))
  )
}

function lineOf(row: Row): string {
  return row.cells.join(' | ')
}
