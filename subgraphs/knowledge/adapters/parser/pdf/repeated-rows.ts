import type { Row } from './rows.ts'

/** The share of a page's height, at the top and at the bottom, in which headers, footers and page numbers stand. */
const MARGIN = 0.12
/** Rows of a page, from either end, that may be such. */
const MARGIN_ROWS = 4
/** Pages in a row, or every other page, on which a row comes again. */
const LEAST_PAGES = 3
const MAX_PAGES_APART = 2
/** Rows at one place, most of which come again, so that the others are of their kind. */
const LEAST_ROWS_AT_PLACE = 5
/** Places that differ by less, in points, are one place. */
const SAME_PLACE = 6

export interface PageRows {
  readonly number: number
  readonly height: number
  /** Rows of upright text first; then those of text that runs another way, up the margin. */
  readonly frames: readonly (readonly Row[])[]
}

/** What stands at one place of several pages. */
interface Series {
  readonly key: string
  readonly rows: { readonly page: number; readonly row: Row }[]
}

export interface RepeatedRows {
  /** What is left out. */
  readonly again: ReadonlySet<Row>
  /**
   * The first of each title that comes again: it stays, for it may be the only place where a document says its name.
   */
  readonly first: ReadonlySet<Row>
}

/**
 * Headers and footers, by what comes again at the same place of neighbouring pages but for its numbers, and page
 * numbers. Where most of the first or last rows of pages are such at a place, all are: the titles of short chapters
 * stand there too.
 */
export function repeatedRowsOf(pages: readonly PageRows[]): RepeatedRows {
  const again = new Set<Row>()
  const first = new Set<Row>()
  const places = new Map<number, Row[]>()
  const outermost = new Set(pages.flatMap(({ frames: [rows = []] }) => [rows[0], rows.at(-1)]))
  for (const { key, rows, place } of seriesOf(pages, again)) {
    const hasWords = /\p{L}{2}/u.test(key)
    places.set(place, [...(places.get(place) ?? []), ...rows.map(({ row }) => row).filter((row) => outermost.has(row))])
    for (const run of runsOf(rows)) {
      if (run.length < LEAST_PAGES) continue
      for (const { row } of hasWords ? run.slice(1) : run) again.add(row)
      if (hasWords) first.add(run[0]!.row)
    }
  }
  for (const rows of places.values()) {
    const known = rows.filter((row) => again.has(row) || first.has(row)).length
    if (rows.length >= LEAST_ROWS_AT_PLACE && known * 2 >= rows.length) for (const row of rows) if (!first.has(row)) again.add(row)
  }
  return { again, first }
}

/** Rows at the edges of pages by place and text; page numbers go to `numbers`. */
function seriesOf(pages: readonly PageRows[], numbers: Set<Row>): Iterable<Series & { readonly place: number }> {
  const series = new Map<string, Series & { readonly place: number }>()
  for (const { number, height, frames } of pages) {
    const [upright = [], ...turned] = frames
    for (const row of [...marginRowsOf(upright, height), ...turned.flatMap((rows) => rows.slice(0, MARGIN_ROWS))]) {
      const key = keyOf(row)
      if (PAGE_NUMBER.test(key)) numbers.add(row)
      // A place may lie on the border of two cells, so each is looked up in its own and the ones beside it.
      const place = Math.round(row.y / SAME_PLACE)
      const near = [place, place - 1, place + 1].find((each) => series.has(`${each} ${key}`)) ?? place
      const found = series.get(`${near} ${key}`) ?? { key, rows: [], place: near }
      found.rows.push({ page: number, row })
      series.set(`${near} ${key}`, found)
    }
  }
  return series.values()
}

/** Rows of neighbouring pages. */
function runsOf(rows: Series['rows']): readonly Series['rows'][] {
  const runs: Series['rows'][] = []
  for (const each of rows) {
    const open = runs.at(-1)
    if (open && each.page - open.at(-1)!.page <= MAX_PAGES_APART) open.push(each)
    else runs.push([each])
  }
  return runs
}

function marginRowsOf(rows: readonly Row[], height: number): readonly Row[] {
  const top = rows.slice(0, MARGIN_ROWS).filter(({ y }) => y < height * MARGIN)
  const bottom = rows.slice(Math.max(top.length, rows.length - MARGIN_ROWS)).filter(({ y }) => y > height * (1 - MARGIN))
  return [...top, ...bottom]
}

/** Characters of a row that are compared. */
const MAX_KEY_CHARS = 300

function keyOf({ segments }: Row): string {
  const text = segments.map(({ glyphs }) => glyphs.join('')).join(' ')
  return text
    .slice(0, MAX_KEY_CHARS)
    .replace(/\p{Nd}+/gu, '#')
    .replace(/\s+/g, ' ')
    .trim()
}

/** A number alone, between dashes or brackets, or after "page"; figures are `#` by then. */
const PAGE_NUMBER = /^[-–—([|\s]*(?:(?:page|p\.|صفحة) ?)?(?:#|[ivxl]{1,6})(?: ?(?:of|من|\/) ?#)?[-–—)\]|\s]*$/i

/** The longest text of a page that may be a stamp. */
const MAX_STAMP_CHARS = 100

/** Whether all pages that have text have the same little one but for its numbers: a stamp on scans. */
export function areStamped(pages: readonly PageRows[]): boolean {
  const texts = pages.map(({ frames }) => frames.flat().map(keyOf).join(' ')).filter((text) => text !== '')
  return texts.length > 1 && texts[0]!.length <= MAX_STAMP_CHARS && texts.every((text) => text === texts[0])
}
