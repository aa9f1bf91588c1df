import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { addSheet, locateCells } from '../sheets/add-sheet.ts'
import { Grid, type Merge } from '../sheets/grid.ts'
import { findAttribute, listChildren, listDescendants, readXml, type XmlElement } from '../xml/xml.ts'
import { CONTENT, openOdf } from './odf-archive.ts'
import { joinLine } from './odf-text.ts'

const UNITS = new Set(['table', 'style'])
/** Maximum cells or rows that one filled element represents. Empty ones take no memory. */
const MAX_REPEATS = 1_000

/** Reads an OpenDocument spreadsheet: its visible sheets in order, and the text that their cells show. */
export async function readOds(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<void> {
  const archive = await openOdf(bytes, limits)
  const hiddenStyles = new Set<string>()
  await readXml(
    archive.piecesOf(CONTENT),
    limits,
    (element) => {
      if (element.name === 'style') {
        if (listChildren(element).some((child) => child.name === 'table-properties' && findAttribute(child, 'display') === 'false'))
          hiddenStyles.add(findAttribute(element, 'name') ?? '')
      } else if (!hiddenStyles.has(findAttribute(element, 'style-name') ?? '')) addTable(element, builder, limits)
    },
    { units: UNITS },
  )
}

function addTable(table: XmlElement, builder: DocumentBuilder, limits: ParserLimits): void {
  const name = findAttribute(table, 'name') ?? ''
  const grid = new Grid(limits)
  const merges: Merge[] = []
  let number = 1
  for (const row of listDescendants(table, 'table-row')) {
    const repeats = readRepeats(row, 'number-rows-repeated')
    const cells = cellsIn(row)
    for (let times = 0; times < Math.min(repeats, cells.length > 0 ? MAX_REPEATS : 0); times += 1) {
      for (const { column, text, isText, columns, rows } of cells) {
        grid.add(number + times, { column, text, isText })
        if (columns > 1 || rows > 1)
          merges.push({
            firstRow: number + times,
            lastRow: number + times + rows - 1,
            firstColumn: column,
            lastColumn: column + columns - 1,
          })
      }
    }
    number += repeats
  }
  grid.repeat(merges)
  builder.add('heading', name, { level: 1 })
  addSheet(grid.rows, builder, locateCells(name))
}

function cellsIn(row: XmlElement) {
  const cells: { column: number; text: string; isText: boolean; columns: number; rows: number }[] = []
  let column = 0
  for (const cell of listChildren(row)) {
    if (cell.name !== 'table-cell' && cell.name !== 'covered-table-cell') continue
    const repeats = readRepeats(cell, 'number-columns-repeated')
    const text = cell.name === 'table-cell' ? readCellText(cell) : ''
    if (text !== '') {
      const type = findAttribute(cell, 'value-type') ?? 'string'
      const [columns, rows] = [readRepeats(cell, 'number-columns-spanned'), readRepeats(cell, 'number-rows-spanned')]
      for (let times = 0; times < Math.min(repeats, MAX_REPEATS); times += 1)
        cells.push({ column: column + times, text, isText: type === 'string', columns, rows })
    }
    column += repeats
  }
  return cells
}

function readCellText(cell: XmlElement): string {
  return listChildren(cell)
    .filter(({ name }) => name === 'p')
    .map((paragraph) => joinLine(paragraph))
    .join('\n')
}

function readRepeats(element: XmlElement, name: string): number {
  const repeats = Number(findAttribute(element, name) ?? 1)
  return Number.isSafeInteger(repeats) && repeats > 0 && repeats < 2 ** 31 ? repeats : 1
}
