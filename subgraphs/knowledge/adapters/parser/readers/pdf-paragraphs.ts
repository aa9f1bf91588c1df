import { foldPresentationForms } from '../../../domain/text/normalise-text.ts'

export interface PageParagraph {
  readonly kind: 'heading' | 'paragraph' | 'list_item' | 'table_row'
  readonly text: string
  /** Of headings. */
  readonly level?: number
}

const SENTENCE_END = /[.!?؟:…۔]["'”’»)\]]*$/u
const BULLET = /^(?:[•●▪◦‣·○■–]|[-*](?= ))\s*|^\(?(?:\p{Nd}{1,3}|[a-zA-Z])[.)]\s+/u
/** Dots between a title and its page number in a table of contents. */
const LEADER = /(?:\s?\.){5,}\s*/g
const DIGIT = /\p{Nd}/u

/** A line that ends a sentence and is shorter than this share of the page's long lines ends its paragraph. */
const SHORT_LINE = 0.85

/** A line shorter than this share ends its paragraph, whatever it ends with: nobody wraps that early. Titles are such lines. */
const VERY_SHORT_LINE = 0.6

/** Words with digits among a line's words from which the line is a row of a table. */
const LEAST_NUMBERS = 3

/**
 * Paragraphs of a page whose lines are hard-wrapped. A paragraph ends at an empty line, before a bullet, around rows of numbers and of a table of contents, and after a
 * short line; other lines are joined by a space, and a word hyphenated over two lines becomes one again. Lines that the document's outline
 * has as titles (by `outlineKeyOf`, with their levels) are headings; nothing else is, because size and weight are not in the text.
 */
export function paragraphsOf(page: string, outline: ReadonlyMap<string, number> = new Map()): readonly PageParagraph[] {
  const lines = page.split(/\r\n?|\n/).map((line) => line.trim())
  const long = longLineOf(lines)
  const paragraphs: PageParagraph[] = []
  let open: string[] = []
  const close = () => {
    if (open.length === 0) return
    const text = join(open)
    paragraphs.push({ kind: BULLET.test(text) ? 'list_item' : 'paragraph', text })
    open = []
  }
  for (const line of lines) {
    const level = outline.get(outlineKeyOf(line))
    if (line === '') close()
    else if (level !== undefined) {
      close()
      paragraphs.push({ kind: 'heading', text: line, level })
    } else if (isNumberRow(line) || line.search(LEADER) >= 0) {
      close()
      paragraphs.push({ kind: 'table_row', text: line.replaceAll(LEADER, ' … ') })
    } else {
      if (BULLET.test(line)) close()
      open.push(line)
      if (line.length < long * (SENTENCE_END.test(line) ? SHORT_LINE : VERY_SHORT_LINE)) close()
    }
  }
  close()
  return paragraphs
}

/** A title as outline and page have it in common: without numbering, case and white space. */
export function outlineKeyOf(title: string): string {
  return foldPresentationForms(title)
    .replace(/^[\s\p{Nd}.]+/u, '')
    .replace(/\s+/g, '')
    .toLowerCase()
}

/** Length that nine tenths of the lines stay under: the width of the page, were it not for a few lines that run over. */
function longLineOf(lines: readonly string[]): number {
  const lengths = lines.filter((line) => line !== '').map((line) => line.length)
  lengths.sort((a, b) => a - b)
  return lengths[Math.floor(lengths.length * 0.9)] ?? 0
}

function isNumberRow(line: string): boolean {
  const words = line.split(/\s+/)
  const numbers = words.filter((word) => DIGIT.test(word)).length
  return numbers >= LEAST_NUMBERS && numbers * 2 > words.length
}

function join(lines: readonly string[]): string {
  const parts: string[] = []
  lines.forEach((line, index) => {
    const next = lines[index + 1]
    if (next === undefined) parts.push(line)
    else if (/\p{Ll}-$/u.test(line) && /^\p{Ll}/u.test(next)) parts.push(line.slice(0, -1))
    else parts.push(line, ' ')
  })
  return parts.join('')
}
