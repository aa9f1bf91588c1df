import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'
import type { SheetCell, SheetRow } from './add-sheet.ts'

/** A range of merged cells, both ends included. Rows count from 1, columns from 0. */
export interface Merge {
  readonly firstRow: number
  readonly lastRow: number
  readonly firstColumn: number
  readonly lastColumn: number
}

/** Maximum filled cells, each about 100 bytes. */
const MAX_CELLS = 2_000_000

/** The filled cells of a sheet. The limit for a document's text also limits their text. */
export class Grid {
  readonly #maxChars: number
  readonly #rows = new Map<number, Map<number, SheetCell>>()
  #chars = 0
  #cells = 0

  constructor({ maxTextBytes }: ParserLimits) {
    this.#maxChars = maxTextBytes
  }

  /** The rows in order, without empty ones. */
  get rows(): readonly SheetRow[] {
    return [...this.#rows].map(([number, cells]) => ({ number, cells: [...cells.values()].sort((a, b) => a.column - b.column) }))
  }

  /**
   * Adds a cell. Rows must be added in order.
   * @throws {ParseFailure} `limit_exceeded` if the sheet has too much text or too many cells.
   */
  add(row: number, cell: SheetCell): void {
    if (cell.text.trim() === '') return
    this.#chars += cell.text.length
    this.#cells += 1
    if (this.#chars > this.#maxChars || this.#cells > MAX_CELLS)
      throw new ParseFailure(
        'limit_exceeded',
        `The sheet has more than ${this.#maxChars} characters or ${MAX_CELLS} filled cells. Split it.`,
      )
    const cells = this.#rows.get(row)
    if (cells) cells.set(cell.column, cell)
    else this.#rows.set(row, new Map([[cell.column, cell]]))
  }

  /**
   * Copies the content of merged cells into each of their cells, in rows that have content. A merge across a whole row
   * is not repeated.
   */
  repeat(merges: readonly Merge[]): void {
    if (merges.length === 0) return
    const numbers = [...this.#rows.keys()]
    const used = new Set([...this.#rows.values()].flatMap((cells) => [...cells.keys()]))
    const columns = [...used].sort((a, b) => a - b)
    let visited = 0
    for (const { firstRow, lastRow, firstColumn, lastColumn } of merges) {
      const cell = this.#rows.get(firstRow)?.get(firstColumn)
      if (!cell) continue
      const within = columns.slice(lowerBound(columns, firstColumn), lowerBound(columns, lastColumn + 1))
      const over = within.length === columns.length && columns.length > 1 ? [firstColumn] : within
      for (const row of numbers.slice(lowerBound(numbers, firstRow), lowerBound(numbers, lastRow + 1))) {
        visited += over.length
        // Merged cells do not overlap, except in an attack.
        if (visited > MAX_CELLS) return
        for (const column of over) if (!this.#rows.get(row)!.has(column)) this.add(row, { ...cell, column })
      }
    }
  }
}

/** Returns the index of the first value that is not below `value`. */
function lowerBound(ascending: readonly number[], value: number): number {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ascending[middle]! < value) low = middle + 1
    else high = middle
  }
  return low
}
