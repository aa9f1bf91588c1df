/** A part of the context, with its source as the context states it. */
export interface Passage {
  readonly text: string
  readonly source: string | null
  /** The file with its place, if the source is a mark. */
  readonly file?: string
}

/** A search result of this service: its mark, the file with its place, and the text up to the next blank line. */
const MARKED = /^(\[#\d{1,6}\])\s(?:(.{1,300}?):\s)?([\s\S]*)$/
/** How deep objects and lists are searched. Search results have about five levels. */
const MAX_DEPTH = 8
const MAX_SOURCE_CHARACTERS = 160

const FILE_OR_PLACE = /\.(?:pdf|docx?|txt|md|html?|csv|json|pptx?|xlsx?|odt|rtf|epub)\b|\b(?:pages?|pp?\.|https?:\/\/)|صفحة|ص\./i
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
  if (/^[{[]/.test(trimmed)) {
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
    const [, mark, file, own] = MARKED.exec(block.trim()) ?? []
    if (mark !== undefined) {
      source = null
      passages.push({ text: own!, source: mark, ...(file !== undefined && { file }) })
      continue
    }
    const lines = block.split('\n').map((line) => line.trim().replace(HEADING, ''))
    let open: (typeof passages)[number] | undefined
    for (const [index, line] of lines.entries()) {
      const named = readSource(line)
      if (named?.text === '' && open?.source === null && index === lines.length - 1) {
        open.source = named.source
      } else if (named || !open) {
        if (named) source = named.ofBlock ? null : named.source
        open = { text: named ? named.text : line, source: named?.source ?? source }
        passages.push(open)
      } else {
        open.text += `\n${line}`
      }
    }
  }
  return passages.filter((passage) => passage.text.trim() !== '')
}

/**
 * What a line says about the source of the text after it. `text` is the text on the same line. `ofBlock`: it applies
 * only to its block.
 */
function readSource(line: string): { readonly source: string; readonly text: string; readonly ofBlock?: boolean } | null {
  const stated = SOURCE_LINE.exec(line)?.[1]
  if (stated !== undefined) return { source: stated.trim(), text: '' }
  const [bracketed = '', label] = BRACKETED.exec(line) ?? []
  if (label === undefined) {
    const [start = '', source] = FILE_THEN_TEXT.exec(line) ?? []
    return source === undefined ? null : { source, text: line.slice(start.length), ofBlock: true }
  }
  const rest = line.slice(bracketed.length).trimStart()
  const [start, name] = SOURCE_THEN_TEXT.exec(rest) ?? []
  if (start !== undefined && FILE_OR_PLACE.test(name!)) return { source: `${label} ${name}`, text: rest.slice(start.length) }
  if (rest.length <= MAX_SOURCE_CHARACTERS && FILE_OR_PLACE.test(rest)) return { source: `${label} ${rest}`, text: '' }
  return /^\[[\d\s]+\]$/.test(label) || FILE_OR_PLACE.test(label) ? { source: label, text: rest } : null
}

type JsonObject = Readonly<Record<string, unknown>>

function passagesOfJson(value: unknown): readonly Passage[] {
  const passages: Passage[] = []
  const facts: Passage[] = []
  const walk = (part: unknown, inherited: string | null, depth: number): void => {
    if (typeof part !== 'object' || part === null || depth > MAX_DEPTH) return
    if (Array.isArray(part)) {
      for (const item of part) {
        if (typeof item === 'string') facts.push({ text: item, source: inherited })
        else walk(item, inherited, depth + 1)
      }
      return
    }
    const object = part as JsonObject
    const source = sourceOf(object) ?? inherited
    const text = [object.text, object.content, object.snippet].find((candidate) => typeof candidate === 'string')
    if (text !== undefined) passages.push({ text, source })
    const plain = Object.entries(object).filter(([, field]) => ['string', 'number', 'boolean'].includes(typeof field))
    if (plain.length > 0) facts.push({ text: plain.map(([name, field]) => `${name}: ${String(field)}`).join(', '), source })
    for (const field of Object.values(object)) walk(field, source, depth + 1)
  }
  walk(value, null, 0)
  // A tool's answer without passages is a list of facts.
  return passages.length > 0 ? passages : facts
}

/** Of a search result of this service, or of a common form. */
function sourceOf(result: JsonObject): string | null {
  const file = (typeof result.file === 'object' ? result.file : null) as JsonObject | null
  const names = [file?.file_name, file?.name, result.file, result.file_name, result.filename, result.source, result.title, result.url]
  const name = names.find((candidate) => typeof candidate === 'string' && candidate.trim() !== '') as string | undefined
  const first = result.page_start ?? result.page
  if (name === undefined || typeof first !== 'number') return name ?? null
  const last = result.page_end
  return typeof last === 'number' && last !== first ? `${name}, pp. ${first}–${last}` : `${name}, p. ${first}`
}
