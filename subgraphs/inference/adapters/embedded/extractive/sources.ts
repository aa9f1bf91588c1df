/** A part of the context, with its source as the context states it. */
export interface Passage {
  readonly text: string
  readonly source: string | null
  /** The file with its place, if the source is a mark. */
  readonly file?: string
}

/** A search result of this service: its mark, the file with its place, and the text up to the next blank line. */
const MARKED = /^(\[#\d{1,6}\])\s(?:(.{1,300}?):\s)?([\s\S]*)$/

/** How deep objects and lists are searched. Search results have about five levels and a few hundred parts. */
const MAX_DEPTH = 8
const MAX_PARTS = 20_000

const FILE_NAME = /\.(?:pdf|docx?|txt|md|html?|csv|json|pptx?|xlsx?|odt|rtf|epub)\b/i
const PLACE = /\b(?:pages?|pp?\.|https?:\/\/)|صفحة|ص\./i
const SOURCE_LINE = /^(?:source|file|document|reference|المصدر|مصدر|الملف|المستند|المرجع)\s*[:：]\s*(\S.{0,200})$/i
const BRACKETED = /^(?:[-*•]\s{0,10})?(\[[^\]\n]{1,120}\])/
const SOURCE_THEN_TEXT = /^(.{1,160}?)\s{0,10}[:：]\s{1,10}(?=\S)/
/** `file.pdf, page 3: text` without brackets; not a list item or code. */
const FILE_THEN_TEXT =
  /^([^\s:`|*#<>"'-][^:`|*<>"']{0,160}?\.(?:pdf|docx?|txt|md|html?|csv|json|pptx?|xlsx?|odt|rtf|epub)\b[^:`|]{0,60}?):\s{1,10}(?=\S)/i
const HEADING = /^(?:context|documents?|search results|السياق|النص|المستندات|نتائج البحث)\s*[:：]\s*/i

/** The passages of a message of the context: search results as JSON, or text with lines that name sources. */
export function readPassages(message: string): readonly Passage[] {
  const trimmed = message.trim()
  if (trimmed.startsWith('{') || trimmed.startsWith('[')) {
    try {
      return passagesOfJson(JSON.parse(trimmed))
    } catch {
      // It only looks like JSON: `[1] file.pdf: …` begins in the same way.
    }
  }
  return passagesOfText(trimmed)
}

/**
 * `[1] file.pdf, page 3: text` names the source of what follows, up to the next such line. So does `Source: …`, unless
 * it ends its block: then it names the source of the text before it. `file.pdf, page 3: text` is often just a sentence,
 * and only applies to its block.
 */
function passagesOfText(text: string): readonly Passage[] {
  const passages: { text: string; source: string | null; file?: string }[] = []
  let source: string | null = null
  for (const block of text.split(/\n\s*\n/)) {
    const marked = MARKED.exec(block.trim())
    if (marked) {
      source = null
      passages.push({ text: marked[3]!, source: marked[1]!, ...(marked[2] !== undefined && { file: marked[2] }) })
      continue
    }
    const lines = block.split('\n').map((line) => line.trim().replace(HEADING, ''))
    let open: (typeof passages)[number] | undefined
    for (const [index, line] of lines.entries()) {
      const marker = readMarker(line)
      if (marker && marker.text === '' && open && open.source === null && index === lines.length - 1) {
        open.source = marker.source
        continue
      }
      if (marker) source = marker.ofBlock ? null : marker.source
      const own = marker ? marker.text : line
      if (marker || !open) {
        open = { text: own, source: marker?.source ?? source }
        passages.push(open)
      } else {
        open.text += `\n${own}`
      }
    }
  }
  return passages.filter((passage) => passage.text.trim() !== '')
}

/**
 * What a line says about the source of the text after it. `text` is the text on the same line. `ofBlock`: it applies
 * only to its block.
 */
interface Marker {
  readonly source: string
  readonly text: string
  readonly ofBlock?: boolean
}

function readMarker(line: string): Marker | null {
  const sourceLine = SOURCE_LINE.exec(line)
  if (sourceLine) return { source: sourceLine[1]!.trim(), text: '' }
  const bracketed = BRACKETED.exec(line)
  if (bracketed) {
    const label = bracketed[1]!
    const rest = line.slice(bracketed[0].length).trimStart()
    const named = SOURCE_THEN_TEXT.exec(rest)
    if (named && isSource(named[1]!)) return { source: `${label} ${named[1]!}`, text: rest.slice(named[0].length) }
    if (isSource(rest) && rest.length <= 160) return { source: `${label} ${rest}`, text: '' }
    return /^\[[\d\s]+\]$/.test(label) || isSource(label) ? { source: label, text: rest } : null
  }
  const named = FILE_THEN_TEXT.exec(line)
  return named ? { source: named[1]!, text: line.slice(named[0].length), ofBlock: true } : null
}

function isSource(text: string): boolean {
  return FILE_NAME.test(text) || PLACE.test(text)
}

function passagesOfJson(value: unknown): readonly Passage[] {
  const passages: Passage[] = []
  const facts: Passage[] = []
  let parts = 0
  const walk = (part: unknown, inherited: string | null, depth: number): void => {
    parts += 1
    if (typeof part !== 'object' || part === null || depth > MAX_DEPTH || parts > MAX_PARTS) return
    if (Array.isArray(part)) {
      for (const item of part) {
        if (typeof item === 'string') facts.push({ text: item, source: inherited })
        else walk(item, inherited, depth + 1)
      }
      return
    }
    const object = part as JsonResult
    const source = readSource(object) ?? inherited
    const text = [object.text, object.content, object.snippet].find((candidate) => typeof candidate === 'string')
    if (text !== undefined) passages.push({ text: text as string, source })
    const plain = Object.entries(object).filter(([, field]) => ['string', 'number', 'boolean'].includes(typeof field))
    if (plain.length > 0) facts.push({ text: plain.map(([name, field]) => `${name}: ${String(field)}`).join(', '), source })
    for (const field of Object.values(object)) walk(field, source, depth + 1)
  }
  walk(value, null, 0)
  // A tool's answer without passages is a list of facts.
  return passages.length > 0 ? passages : facts
}

/** The fields of search results that are understood: those of this service, and common ones. */
interface JsonResult {
  readonly text?: unknown
  readonly content?: unknown
  readonly snippet?: unknown
  readonly file?: unknown
  readonly file_name?: unknown
  readonly filename?: unknown
  readonly source?: unknown
  readonly title?: unknown
  readonly url?: unknown
  readonly page?: unknown
  readonly page_start?: unknown
  readonly page_end?: unknown
}

function readSource(result: JsonResult): string | null {
  const file =
    typeof result.file === 'object' && result.file !== null ? (result.file as JsonResult & { readonly name?: unknown }) : undefined
  const names = [file?.file_name, file?.name, result.file, result.file_name, result.filename, result.source, result.title, result.url]
  const name = names.find((candidate) => typeof candidate === 'string' && candidate.trim() !== '') as string | undefined
  if (name === undefined) return null
  const first = result.page_start ?? result.page
  if (typeof first !== 'number') return name
  const last = result.page_end
  return typeof last === 'number' && last !== first ? `${name}, pp. ${first}–${last}` : `${name}, p. ${first}`
}
