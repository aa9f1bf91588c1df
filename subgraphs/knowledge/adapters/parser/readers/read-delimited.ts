import { decodeText, warnOfReplaced } from '../decode-text.ts'
import { findDelimiter, readRecords } from '../delimited.ts'
import type { ParserLimits } from '../limits.ts'
import { addSheet } from '../sheets/add-sheet.ts'
import { Grid } from '../sheets/grid.ts'
import type { DocumentBuilder } from './document-builder.ts'

/** Matches a cell with a number or a date, which cannot be a column's name. */
const NOT_WORDS = /^[\p{Nd}\s.,:%/+()$€£٫٬-]*$/u

/** Reads CSV (RFC 4180) with any delimiter. Every row carries the header row. */
export function readDelimited(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): void {
  const decoded = decodeText(bytes)
  warnOfReplaced(decoded, builder)
  // Excel reads the delimiter from a first line such as `sep=;`.
  const [said = '', named] = /^sep=(.)(?:\r\n?|\n)/.exec(decoded.text) ?? []
  const text = decoded.text.slice(said.length)
  const grid = new Grid(limits)
  let number = 0
  for (const row of readRecords(text, named ?? findDelimiter(text))) {
    number += 1
    for (const [column, cell] of row.entries()) grid.add(number, { column, text: cell, isText: !NOT_WORDS.test(cell) })
  }
  addSheet(grid.rows, builder, (row) => ({ within: 'row ', start: `${row}`, end: `${row}` }))
}
