import { LEADER } from './paragraphs.ts'
import { type Area, areaAround, areaOf, joinText, type Row, type Segment } from './rows.ts'

/** A table has at least `LEAST_ROWS` rows of several cells, or two rows of at least `LEAST_CELLS` cells. */
const LEAST_ROWS = 3
const LEAST_CELLS = 3
/** Maximum share of a table's rows that cross a column border, such as titles over several columns. */
const CROSSING = 0.15
const LEAST_GUTTER = 0.3
const MAX_COLUMNS = 100
/**
 * Line steps in a table, as shares of the letter size. Lines of one cell are at most `CELL_LEADING` apart. A line less
 * than `BESIDE` away is beside the other. A step above `ROW_LEADING` ends the table.
 */
const CELL_LEADING = 1.45
const BESIDE = 0.9
const ROW_LEADING = 5
/** Maximum single-cell lines between rows of several cells. */
const MAX_LINES_BETWEEN = 2
/** The step between rows is larger than the step between lines of a cell by at least this factor. */
const CLEARLY_LARGER = 1.6
const MAX_HEADER_ROWS = 4
const MAX_HEADER_CELL_CHARS = 80
const MAX_LABEL_GLYPHS = 5

export interface TableRow {
  /** In reading order. */
  readonly cells: readonly string[]
  readonly area: Area
}

interface TablePart {
  readonly kind: 'table'
  readonly header: TableRow | undefined
  readonly rows: readonly TableRow[]
}
interface LinesPart {
  readonly kind: 'lines'
  readonly rows: readonly Row[]
}

/** Splits the rows of a column into tables and lines of text, from the top. */
export function splitIntoParts(rows: readonly Row[], isRtl: boolean): readonly (TablePart | LinesPart)[] {
  const parts: (TablePart | LinesPart)[] = []
  let lines: Row[] = []
  const flush = () => {
    if (lines.length > 0) parts.push({ kind: 'lines', rows: lines })
    lines = []
  }
  for (let at = 0; at < rows.length; ) {
    const end = endOfCandidate(rows, at)
    const found = end > at + 1 ? findTable(rows, at, end, isRtl) : undefined
    for (const row of rows.slice(at, found ? at + found.titles : Math.max(end, at + 1))) lines.push(row)
    if (found) {
      flush()
      parts.push(found.table)
    }
    at = found?.end ?? Math.max(end, at + 1)
  }
  flush()
  return parts
}

/**
 * Returns the end of the rows that may form a table from `start` on: rows of several cells, and the lines between them
 * that may continue a cell.
 */
function endOfCandidate(rows: readonly Row[], start: number): number {
  if (countCells(rows[start]!) < 2) return start
  let end = start
  for (let at = start; at < rows.length; at += 1) {
    const step = at > start ? rows[at]!.y - rows[at - 1]!.y : 0
    if (step > ROW_LEADING * rows[at]!.size || at - end > MAX_LINES_BETWEEN) break
    // A row less than a line's height away is beside the previous one.
    if (countCells(rows[at]!) > 1 || (at === end && step < BESIDE * rows[at]!.size)) end = at + 1
  }
  return end
}

/** Counts a row's cells. A number or bullet and its text count as one. */
function countCells({ segments }: Row): number {
  const isLabelled = segments.length === 2 && segments.some((segment) => segment.glyphs.length <= MAX_LABEL_GLYPHS && isLabel(segment))
  return isLabelled ? 1 : segments.length
}

function isLabel({ glyphs }: Segment): boolean {
  return /^[([]?(?:\p{Nd}+|\p{L}{1,4})?[-–.)\]:•●▪◦‣·○■*]+$/u.test(glyphs.join(''))
}

interface Line extends TableRow {
  readonly y: number
  readonly size: number
}

interface Found {
  readonly table: TablePart
  /** The number of rows above the table that cross its columns. */
  readonly titles: number
  readonly end: number
}

function findTable(all: readonly Row[], from: number, to: number, isRtl: boolean): Found | undefined {
  const rows = all.slice(from, to)
  const full = rows.filter((row) => countCells(row) > 1)
  const several = full.filter(({ segments }) => segments.length >= LEAST_CELLS).length
  if (full.length < LEAST_ROWS && several < 2) return undefined
  const borders = findBorders(withMostCells(full))
  if (borders.length === 0 || borders.length >= MAX_COLUMNS) return undefined
  const end = endOfLastRow(all, to, borders, isRtl)
  const parted = all.slice(from, end).map((row) => ({ ...row, segments: row.segments.flatMap((segment) => partedAt(segment, borders)) }))
  const titles = titlesAbove(parted, borders)
  const lines = parted.slice(titles).map((row): Line => {
    const { y, size, segments } = row
    const columns = Array.from({ length: borders.length + 1 }, (): Segment[] => [])
    for (const segment of segments) columns[findColumn(segment, borders)]!.push(segment)
    const cells = columns.map((cell) => joinText(cell, isRtl).replaceAll(LEADER, ' ').trim())
    return { y, size, cells: isRtl ? cells.reverse() : cells, area: areaOf(row) }
  })
  const filled = lines.filter(({ cells }) => cells.filter((cell) => cell !== '').length > 1).length
  if (filled < 2 || filled * 2 < lines.length) return undefined
  const merged = mergedRows(lines)
  const headerRows = countHeaderRows(merged.map(({ cells }) => cells))
  const header = headerRows > 0 ? stacked(merged.slice(0, headerRows)) : undefined
  return { table: { kind: 'table', header, rows: merged.slice(headerRows) }, titles, end }
}

/**
 * Returns the end of the last row, with the lines below that continue one of its cells. Such a line is in one column
 * other than the first.
 */
function endOfLastRow(rows: readonly Row[], to: number, borders: readonly number[], isRtl: boolean): number {
  let end = to
  for (; end < rows.length && end < to + MAX_LINES_BETWEEN; end += 1) {
    const { y, size, segments } = rows[end]!
    const [segment] = segments
    if (segments.length > 1 || !segment || y - rows[end - 1]!.y > CELL_LEADING * size || isAcross(segment, borders)) break
    if (findColumn(segment, borders) === (isRtl ? borders.length : 0)) break
  }
  return end
}

/** Returns the half of the rows with the most cells, which show the columns best. */
function withMostCells(rows: readonly Row[]): readonly Row[] {
  const counts = rows.map(({ segments }) => segments.length).sort((a, b) => a - b)
  const usual = counts[counts.length >> 1]!
  return rows.filter(({ segments }) => segments.length >= usual)
}

/**
 * Returns the number of rows to skip before the table: up to the last row that crosses a border above the first row
 * with cells in most columns.
 */
function titlesAbove(rows: readonly Row[], borders: readonly number[]): number {
  const first = rows.findIndex(({ segments }) => segments.length * 2 > borders.length + 1)
  return rows.slice(0, Math.max(first, 0)).findLastIndex(({ segments }) => segments.some((each) => isAcross(each, borders))) + 1
}

function isAcross({ x0, x1, size }: Segment, borders: readonly number[]): boolean {
  return borders.some((border) => x0 < border - size / 2 && x1 > border + size / 2)
}

/** Splits a segment at the gaps that lie on a border. */
function partedAt(segment: Segment, borders: readonly number[]): readonly Segment[] {
  const { pieces, size } = segment
  const parts: Segment[] = []
  let open = pieces.slice(0, 1)
  const close = () => {
    const glyphs = open.flatMap((piece) => piece.glyphs)
    const start = glyphs[0] === ' ' ? 1 : 0
    parts.push({ ...segment, pieces: open, glyphs: glyphs.slice(start), x0: open[0]!.x0, x1: open.at(-1)!.x1 })
  }
  for (const [index, piece] of pieces.entries()) {
    if (index === 0) continue
    const gap = piece.x0 - open.at(-1)!.x1
    const middle = piece.x0 - gap / 2
    if (gap > LEAST_GUTTER * size && borders.some((border) => Math.abs(border - middle) < size)) {
      close()
      open = []
    }
    open.push(piece)
  }
  close()
  return parts
}

/** Returns the borders between columns: positions that almost no row crosses. */
function findBorders(rows: readonly Row[]): readonly number[] {
  const events = rows.flatMap(({ segments }) =>
    segments.flatMap(({ x0, x1 }) => [
      { x: x0, change: 1 },
      { x: x1, change: -1 },
    ]),
  )
  events.sort((a, b) => a.x - b.x || a.change - b.change)
  const most = Math.floor(rows.length * CROSSING)
  const size = rows.reduce((sum, row) => sum + row.size, 0) / rows.length
  const borders: number[] = []
  let covering = 0
  let freeFrom: number | undefined
  for (const { x, change } of events) {
    const before = covering
    covering += change
    if (change > 0 && before <= most && covering > most) {
      if (freeFrom !== undefined && x - freeFrom >= LEAST_GUTTER * size) borders.push((freeFrom + x) / 2)
      freeFrom = undefined
    } else if (change < 0 && before > most && covering <= most) freeFrom = x
  }
  return borders
}

/** Returns the column that contains the middle of a segment. */
function findColumn({ x0, x1 }: Segment, borders: readonly number[]): number {
  const middle = (x0 + x1) / 2
  const index = borders.findIndex((border) => middle < border)
  return index < 0 ? borders.length : index
}

/** Merges the lines of each row, cell by cell. */
function mergedRows(lines: readonly Line[]): readonly TableRow[] {
  const steps = lines.slice(1).map((line, index) => line.y - lines[index]!.y)
  const limit = stepBetween(steps)
  const rows: Line[][] = []
  for (const [index, line] of lines.entries()) {
    const open = rows.at(-1)
    const step = steps[index - 1] ?? 0
    const goesOn = limit === undefined ? isContinuation(line, step) : step < limit
    if (open && goesOn && !isRowOfItsOwn(open, line)) open.push(line)
    else rows.push([line])
  }
  return rows.map(stacked)
}

/**
 * Returns a threshold between the small steps, of lines in a cell, and the large ones, of rows. Returns undefined if
 * all steps are similar.
 */
function stepBetween(steps: readonly number[]): number | undefined {
  const sorted = steps.toSorted((a, b) => a - b)
  let best: number | undefined
  let factor = CLEARLY_LARGER
  const [from, to] = [Math.ceil(sorted.length / 5), Math.floor((sorted.length * 4) / 5)]
  for (let index = Math.max(1, from); index <= to && index < sorted.length; index += 1) {
    const [small, large] = [Math.max(sorted[index - 1]!, 0.1), sorted[index]!]
    if (large / small > factor) {
      factor = large / small
      best = Math.sqrt(large * small)
    }
  }
  return best
}

function isContinuation({ cells, size }: Line, step: number): boolean {
  return step <= CELL_LEADING * size && cells.filter((cell) => cell !== '').length === 1 && cells[0] === '' && !cells.some(isNumeric)
}

/**
 * Reports whether a line starts a new row. It does if it is the second number in a column, or if it fills most of the
 * cells that the line above fills.
 */
function isRowOfItsOwn(open: readonly Line[], { cells }: Line): boolean {
  const above = open.at(-1)!.cells
  const both = cells.filter((cell, index) => cell !== '' && above[index] !== '').length
  if (cells.some((cell, index) => isNumeric(cell) && open.some((line) => isNumeric(line.cells[index]!)))) return true
  return both > 2 && both * 2 > cells.length
}

function stacked(rows: readonly TableRow[]): TableRow {
  const cells = rows[0]!.cells.map((_, column) =>
    rows
      .map((row) => row.cells[column]!)
      .filter((cell) => cell !== '')
      .join(' '),
  )
  return { cells, area: areaAround(rows.map(({ area }) => area)) }
}

function isNumeric(cell: string): boolean {
  return /\p{Nd}/u.test(cell) && !/\p{L}{2}/u.test(cell)
}

const YEARS = /^(?:\p{Nd}{4}(?:\s?[-–—/]\s?\p{Nd}{2,4})?|Q\p{Nd})$/u

/**
 * Returns the number of header rows: rows of words or years above rows of numbers. In a table without numbers, the
 * first row is a header if it fills all cells with short, different words.
 */
function countHeaderRows(rows: readonly (readonly string[])[]): number {
  const isOfNumbers = (cells: readonly string[]) => {
    const numbers = cells.filter(isNumeric)
    return numbers.length * 3 >= cells.filter(Boolean).length && !numbers.every((cell) => YEARS.test(cell))
  }
  const firstNumbers = rows.findIndex(isOfNumbers)
  if (firstNumbers > 0 && firstNumbers <= MAX_HEADER_ROWS && rows.slice(0, firstNumbers).some((cells) => cells.filter(Boolean).length > 1))
    return firstNumbers
  const [first] = rows
  if (firstNumbers >= 0 || rows.length < LEAST_ROWS || !first) return 0
  const isShort = first.every((cell, index) => (cell !== '' || index === 0) && cell.length <= MAX_HEADER_CELL_CHARS && !isNumeric(cell))
  return isShort && new Set(first).size === first.length ? 1 : 0
}
