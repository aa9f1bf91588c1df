import type { DefaultTreeAdapterTypes } from 'parse5'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { addTable, type TableCell } from '../tables/add-table.ts'
import { isElement, isHidden, readText, walk } from './html-tree.ts'

type Element = DefaultTreeAdapterTypes.Element

/**
 * Reports whether a table contains data. Tables with one column, or with tables, headings or preformatted text inside,
 * only lay out a page. They are read as running text.
 */
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

/** Adds a table's caption and rows. */
export function readTable(table: Element, builder: DocumentBuilder): void {
  for (const child of table.childNodes) {
    if (isElement(child) && child.tagName === 'caption') builder.add('paragraph', readText(child))
  }
  addTable(readRows(table), builder)
}

function readRows(table: Element): readonly (readonly TableCell[])[] {
  const rows: (readonly TableCell[])[] = []
  let inHead = false
  for (const { node, leaving, skip } of walk(table)) {
    if (!isElement(node)) continue
    if (!leaving && node !== table && isHidden(node)) skip()
    else if (node.tagName === 'thead') inHead = !leaving
    else if (node.tagName === 'tr' && !leaving) {
      const cells = node.childNodes.filter(isElement).filter((cell) => !isHidden(cell) && (cell.tagName === 'td' || cell.tagName === 'th'))
      const isHeader = inHead || (cells.length > 0 && cells.every(({ tagName }) => tagName === 'th'))
      rows.push(
        cells.map((cell) => ({ text: readText(cell), columns: readSpan(cell, 'colspan'), rows: readSpan(cell, 'rowspan'), isHeader })),
      )
      skip()
    }
  }
  return rows
}

function readSpan(cell: Element, name: string): number {
  return Number.parseInt(cell.attrs.find((attribute) => attribute.name === name)?.value ?? '1', 10)
}
