import type { Row } from './rows.ts'

/** The share of a page's height, at the top and at the bottom, that can hold headers, footers and page numbers. */
const MARGIN = 0.12
/** The number of rows at each end of a page that can be headers or footers. */
const MARGIN_ROWS = 4
/** The least number of pages with the same row, and the largest distance between two of them. */
const LEAST_PAGES = 3
const MAX_PAGES_APART = 2
/** With at least this many rows at one position, the majority decides about all of them. */
const LEAST_ROWS_AT_POSITION = 5
/** Positions closer than this, in points, are the same. */
const SAME_POSITION = 6

interface PageRows {
  readonly number: number
  readonly height: number
  /** Rows of upright text, followed by those of text in other directions, such as text in the margin. */
  readonly frames: readonly (readonly Row[])[]
}

/** Rows with the same text and position on several pages. */
interface Series {
  readonly key: string
  readonly rows: { readonly page: number; readonly row: Row }[]
}

interface RepeatedRows {
  /** The rows to leave out. */
  readonly again: ReadonlySet<Row>
  /** The first row of each repeated title. It stays, because a document's name may appear only there. */
  readonly first: ReadonlySet<Row>
}

/**
 * Finds page numbers, headers and footers: rows that recur at the same position of nearby pages, apart from their
 * numbers. If most of the first or last rows at a position recur, all rows at that position count, because the titles
 * of short chapters stand there too.
 */
export function findRepeatedRows(pages: readonly PageRows[]): RepeatedRows {
  const again = new Set<Row>()
  const first = new Set<Row>()
  const positions = new Map<number, Row[]>()
  const outermost = new Set(pages.flatMap(({ frames: [rows = []] }) => [rows[0], rows.at(-1)]))
  for (const { key, rows, position } of findSeries(pages, again)) {
    const hasWords = /\p{L}{2}/u.test(key)
    positions.set(position, [...(positions.get(position) ?? []), ...rows.map(({ row }) => row).filter((row) => outermost.has(row))])
    for (const run of splitIntoRuns(rows)) {
      if (run.length < LEAST_PAGES) continue
      for (const { row } of hasWords ? run.slice(1) : run) again.add(row)
      if (hasWords) first.add(run[0]!.row)
    }
  }
  for (const rows of positions.values()) {
    const known = rows.filter((row) => again.has(row) || first.has(row)).length
    if (rows.length >= LEAST_ROWS_AT_POSITION && known * 2 >= rows.length) for (const row of rows) if (!first.has(row)) again.add(row)
  }
  return { again, first }
}

/** Groups the rows at the edges of pages by position and text. Adds page numbers to `numbers`. */
function findSeries(pages: readonly PageRows[], numbers: Set<Row>): Iterable<Series & { readonly position: number }> {
  const series = new Map<string, Series & { readonly position: number }>()
  for (const { number, height, frames } of pages) {
    const [upright = [], ...turned] = frames
    for (const row of [...listMarginRows(upright, height), ...turned.flatMap((rows) => rows.slice(0, MARGIN_ROWS))]) {
      const key = rowKey(row)
      if (PAGE_NUMBER.test(key)) numbers.add(row)
      // A position may lie on the border of two cells, so look in its own cell and in both neighbours.
      const position = Math.round(row.y / SAME_POSITION)
      const near = [position, position - 1, position + 1].find((each) => series.has(`${each} ${key}`)) ?? position
      const found = series.get(`${near} ${key}`) ?? { key, rows: [], position: near }
      found.rows.push({ page: number, row })
      series.set(`${near} ${key}`, found)
    }
  }
  return series.values()
}

/** Splits a series into runs of nearby pages. */
function splitIntoRuns(rows: Series['rows']): readonly Series['rows'][] {
  const runs: Series['rows'][] = []
  for (const each of rows) {
    const open = runs.at(-1)
    if (open && each.page - open.at(-1)!.page <= MAX_PAGES_APART) open.push(each)
    else runs.push([each])
  }
  return runs
}

function listMarginRows(rows: readonly Row[], height: number): readonly Row[] {
  const top = rows.slice(0, MARGIN_ROWS).filter(({ y }) => y < height * MARGIN)
  const bottom = rows.slice(Math.max(top.length, rows.length - MARGIN_ROWS)).filter(({ y }) => y > height * (1 - MARGIN))
  return [...top, ...bottom]
}

/** The number of characters of a row that are compared. */
const MAX_KEY_CHARS = 300

function rowKey({ segments }: Row): string {
  const text = segments.map(({ glyphs }) => glyphs.join('')).join(' ')
  return text
    .slice(0, MAX_KEY_CHARS)
    .replace(/\p{Nd}+/gu, '#')
    .replace(/\s+/g, ' ')
    .trim()
}

/** Matches a number alone, between dashes or brackets, or after "page". Numbers have already become `#`. */
const PAGE_NUMBER = /^[-–—([|\s]*(?:(?:page|p\.|صفحة) ?)?(?:#|[ivxl]{1,6})(?: ?(?:of|من|\/) ?#)?[-–—)\]|\s]*$/i

/** The longest text of a page that can be a stamp. */
const MAX_STAMP_CHARS = 100

/**
 * Reports whether all pages with text have the same short text, apart from numbers. This is a stamp on scanned pages.
 */
export function areStamped(pages: readonly PageRows[]): boolean {
  const texts = pages.map(({ frames }) => frames.flat().map(rowKey).join(' ')).filter((text) => text !== '')
  return texts.length > 1 && texts[0]!.length <= MAX_STAMP_CHARS && texts.every((text) => text === texts[0])
}
