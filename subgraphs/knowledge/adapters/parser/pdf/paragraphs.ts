import type { Headings } from './headings.ts'
import { type Area, areaOf, isRightToLeft, joinText, type Row } from './rows.ts'

const SENTENCE_END = /[.!?؟:…۔]["'”’»)\]]*$/u
const BULLET = /^(?:[•●▪◦‣·○■–]|[-*](?= ))\s*|^\(?(?:\p{Nd}{1,3}|[a-zA-Z]|[ء-ي])(?:[.)]|-(?=\s))\s*(?=\D)/u
/** Matches the dots between a title and its page number in a table of contents. */
export const LEADER = /(?:\s?\.){5,}\s*/g

/** A line that ends a sentence also ends its paragraph if it is shorter than this share of its column. */
const SHORT_LINE = 0.85
/** Any line that is shorter than this share ends its paragraph, because text does not wrap that early. */
const VERY_SHORT_LINE = 0.6
/** A line step larger than the column's usual one by this factor ends a paragraph. */
const LARGE_STEP = 1.4
/** An indent of this share of the letter size starts a paragraph. */
const INDENT = 0.8
const SAME_SIZE = 0.1
/** Maximum step between lines of one heading, as a share of the letter size. */
const HEADING_LEADING = 1.9

/** A line of a block. A line that a hyphen divides has no hyphen here. */
interface PlacedText {
  readonly text: string
  readonly area: Area
}

export interface PageBlock {
  readonly kind: 'heading' | 'paragraph' | 'list_item' | 'table_row'
  readonly text: string
  readonly lines: readonly PlacedText[]
  /** The level of a heading. */
  readonly level?: number
}

interface Line extends PlacedText {
  readonly y: number
  readonly size: number
  readonly isBold: boolean
  /** Distances from the column's edge where reading starts, and to the edge where it ends. */
  readonly before: number
  readonly after: number
  readonly level: number | undefined
  readonly isTitled: boolean
}

interface Column {
  readonly x0: number
  readonly x1: number
  readonly isRtl: boolean
  readonly headings: Headings
  /** Rows that are not headings, whatever their style. */
  readonly noHeadings: ReadonlySet<Row>
}

/** Joins the lines of a column into headings, paragraphs and list items. */
export function toParagraphs(rows: readonly Row[], column: Column): readonly PageBlock[] {
  const lines = rows.map((row) => toLine(row, column)).filter(({ text }) => text !== '')
  const step = findUsualStep(lines)
  const width = column.x1 - column.x0
  const blocks: PageBlock[] = []
  let open: Line[] = []
  const close = () => {
    if (open.length > 0) blocks.push(toBlock(open))
    open = []
  }
  for (const line of lines) {
    if (open.length > 0 && !goesOn(open, line, step, width)) close()
    open.push(line)
  }
  close()
  return blocks
}

function toLine(row: Row, { x0, x1, isRtl: isRtlPage, headings, noHeadings }: Column): Line {
  const { segments, y, size } = row
  const text = joinText(segments, isRtlPage)
  const isRtl = isRightToLeft(
    segments.flatMap(({ glyphs }) => glyphs),
    isRtlPage,
  )
  const [left, right] = [segments[0]!.x0 - x0, x1 - segments.at(-1)!.x1]
  const isBold = segments.every((segment) => segment.isBold)
  const titled = headings.titled(text)
  const level = noHeadings.has(row) ? undefined : (titled ?? headings.styled(text, { size, isBold }))
  return {
    text,
    area: areaOf(row),
    y,
    size,
    isBold,
    before: isRtl ? right : left,
    after: isRtl ? left : right,
    level,
    isTitled: titled !== undefined && level !== undefined,
  }
}

function findUsualStep(lines: readonly Line[]): number {
  const steps = lines.slice(1).map(({ y }, index) => y - lines[index]!.y)
  const sorted = steps.filter((step) => step > 0).sort((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? 0
}

function goesOn(open: readonly Line[], line: Line, usual: number, width: number): boolean {
  const last = open.at(-1)!
  const step = line.y - last.y
  if (line.level !== undefined || last.level !== undefined)
    return line.level === last.level && !last.isTitled && !line.isTitled && step > 0 && step < HEADING_LEADING * line.size
  if (step <= 0 || step > Math.max(LARGE_STEP * usual, line.size)) return false
  if (Math.abs(line.size - last.size) > SAME_SIZE * last.size) return false
  if (BULLET.test(line.text) || hasLeader(line) || hasLeader(last)) return false
  const isHanging = BULLET.test(open[0]!.text)
  const indent = line.before - last.before
  if (indent > INDENT * line.size && !(isHanging && open.length === 1)) return false
  if (isHanging && open.length > 1 && -indent > INDENT * line.size) return false
  const length = width - last.before - last.after
  return length >= width * (SENTENCE_END.test(last.text) ? SHORT_LINE : VERY_SHORT_LINE)
}

function hasLeader({ text }: Line): boolean {
  return text.search(LEADER) >= 0
}

function toBlock(lines: readonly Line[]): PageBlock {
  const [first] = lines
  const wrapped = withoutHyphens(lines)
  const text = wrapped.map((line) => line.text).join('')
  if (first!.level !== undefined) return { kind: 'heading', text, lines: wrapped, level: first!.level }
  if (hasLeader(first!)) {
    const led = wrapped.map((line) => ({ ...line, text: line.text.replaceAll(LEADER, ' … ') }))
    return { kind: 'table_row', text: led.map((line) => line.text).join(''), lines: led }
  }
  return { kind: BULLET.test(text) ? 'list_item' : 'paragraph', text, lines: wrapped }
}

/**
 * Returns the lines with the space that follows each. A word that is hyphenated across two lines becomes one word
 * again.
 */
function withoutHyphens(lines: readonly Line[]): readonly PlacedText[] {
  return lines.map(({ text, area }, index) => {
    const next = lines[index + 1]?.text
    if (next === undefined) return { text, area }
    const isDivided = text.endsWith('\u00ad') || (/\p{Ll}[-‐]$/u.test(text) && /^\p{Ll}/u.test(next))
    return { text: isDivided ? text.slice(0, -1) : `${text} `, area }
  })
}
