import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'
import type { SheetCell, SheetRow } from './add-sheet.ts'

/** Cells that are one, by first and last; rows from 1, columns from 0. */
export interface Merge {
  readonly firstRow: number
  readonly lastRow: number
  readonly firstColumn: number
  readonly lastColumn: number
}

/** Each takes some 100 bytes. */
const MAX_CELLS = 2_000_000

/** The filled cells of a sheet, as far as there is room for their text in a document. */
export class Grid {
  readonly #maxChars: number
  readonly #rows = new Map<number, Map<number, SheetCell>>()
  #chars = 0
  #cells = 0

  constructor({ maxTextBytes }: ParserLimits) {
    this.#maxChars = maxTextBytes
  }

  /** Rows in their order, without empty ones. */
  get rows(): readonly SheetRow[] {
    return [...this.#rows].map(([number, cells]) => ({ number, cells: [...cells.values()].sort((a, b) => a.column - b.column) }))
  }

  /** Rows come in their order. @throws {ParseFailure} `limit_exceeded` */
  add(row: number, cell: SheetCell): void {
    if (cell.text.trim() === '') return
    this.#chars += cell.text.length
    this.#cells += 1
    if (this.#chars > this.#maxChars || this.#cells > MAX_CELLS)
      throw new ParseFailure('limit_exceeded', `The sheet has more than ${this.#maxChars} characters or ${MAX_CELLS} filled cells.`)
    const cells = this.#rows.get(row)
    if (cells) cells.set(cell.column, cell)
    else this.#rows.set(row, new Map([[cell.column, cell]]))
  }

  /**
   * Writes what merged cells hold into each of them, in rows that have something; not over a whole row, which says it
   * once.
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
        // Merges do not overlap, unless somebody means harm.
        if (visited > MAX_CELLS) return
        for (const column of over) if (!this.#rows.get(row)!.has(column)) this.add(row, { ...cell, column })
      }
    }
  }
}

/** Index of the first that is not below. */
function lowerBound(ascending: readonly number[], value: number): number {
  let [low, high] = [0, ascending.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ascending[middle]! < value) low = middle + 1
    else high = middle
  }
  return low
}
