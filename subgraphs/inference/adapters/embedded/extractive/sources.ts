/** A part of the context, with its source as the context states it. */
export interface Excerpt {
  readonly text: string
  readonly source: string | null
  /** The file with its place, if the source is a mark. */
  readonly file?: string
}

/** How deep objects and lists are searched. Search results have about five levels. */
const MAX_DEPTH = 8

/** A search result of this service: its mark, the file with its place, and the text up to the next blank line. */
const MARKED = /^(\[#\d{1,6}\])\s(?:(.{1,300}?):\s)?([\s\S]*)$/
const HEADING = /^(?:context|documents?|search results|السياق|النص|المستندات|نتائج البحث)\s*[:：]\s*/i
const SOURCE_LINE = /^(?:source|file|document|reference|المصدر|مصدر|الملف|المستند|المرجع)\s*[:：]\s*(\S.{0,200})$/i
const LABEL = /^(?:[-*•]\s{0,10})?(\[[^\]\n]{1,120}\])\s*/
const NAME = /^(.{1,160}?)(?:\s{0,10}[:：]\s{1,10}(?=\S)|$)/
/** Not a list item or code. */
const PLAIN_NAME = /^[^\s:`|*#<>"'-][^:`|*<>"']*$/
const FILE = /\.(?:pdf|docx?|txt|md|html?|csv|json|pptx?|xlsx?|odt|rtf|epub)\b/i
const LOCATION = /\b(?:pages?|pp?\.|https?:\/\/)|صفحة|ص\./i

/** The passages of a message of the context: search results as JSON, or text with lines that name sources. */
export function readExcerpts(message: string): readonly Excerpt[] {
  try {
    const json: unknown = JSON.parse(message)
    if (typeof json === 'object') return excerptsOfJson(json)
  } catch {
    // It is text.
  }
  return excerptsOfText(message)
}

/**
 * `[1] file.pdf, page 3: text` names the source of what follows, up to the next such line. So does `Source: …`, unless
 * it ends its block: then it names the source of the text before it. `file.pdf, page 3: text` is often just a sentence,
 * and only applies to its block.
 */
function excerptsOfText(text: string): readonly Excerpt[] {
  const excerpts: { text: string; source: string | null; file?: string }[] = []
  let source: string | null = null
  for (const block of text.trim().split(/\n\s*\n/)) {
    const [, mark, file, own] = MARKED.exec(block.trim()) ?? []
    if (mark !== undefined) {
      source = null
      excerpts.push({ text: own!, source: mark, ...(file !== undefined && { file }) })
      continue
    }
    const lines = block.split('\n').map((line) => line.trim().replace(HEADING, ''))
    let open: (typeof excerpts)[number] | undefined
    for (const [index, line] of lines.entries()) {
      const named = readSource(line)
      if (named?.text === '' && open?.source === null && index === lines.length - 1) {
        open.source = named.source
      } else if (named || !open) {
        if (named) source = named.ofBlock ? null : named.source
        open = { text: named ? named.text : line, source: named?.source ?? source }
        excerpts.push(open)
      } else {
        open.text += `\n${line}`
      }
    }
  }
  return excerpts.filter((excerpt) => excerpt.text.trim() !== '')
}

/** What a line says about the source of its text, which may be '', and of the text after it; `ofBlock`: only of its block. */
function readSource(line: string): { readonly source: string; readonly text: string; readonly ofBlock?: boolean } | null {
  const stated = SOURCE_LINE.exec(line)?.[1]
  if (stated !== undefined) return { source: stated.trim(), text: '' }
  const [start = '', label] = LABEL.exec(line) ?? []
  const rest = line.slice(start.length)
  const [named = '', name = ''] = NAME.exec(rest) ?? []
  const text = rest.slice(named.length)
  if (label === undefined) return text !== '' && FILE.test(name) && PLAIN_NAME.test(name) ? { source: name, text, ofBlock: true } : null
  if (FILE.test(name) || LOCATION.test(name)) return { source: `${label} ${name.trim()}`, text }
  return /^\[[\d\s]+\]$/.test(label) || FILE.test(label) || LOCATION.test(label) ? { source: label, text: rest } : null
}

type JsonObject = Readonly<Record<string, unknown>>

/** The texts of search results; a tool's answer without any is a list of facts. */
function excerptsOfJson(value: unknown): readonly Excerpt[] {
  const excerpts: Excerpt[] = []
  const facts: Excerpt[] = []
  const walk = (part: unknown, inherited: string | null, depth: number): void => {
    if (typeof part !== 'object' || part === null || depth > MAX_DEPTH) return
    const { text, content, snippet, ...rest } = part as JsonObject
    const source = sourceOf(rest) ?? inherited
    const own = [text, content, snippet].find((candidate) => typeof candidate === 'string')
    if (own !== undefined) excerpts.push({ text: own, source })
    const plain = Object.entries(part).filter(([, field]) => ['string', 'number', 'boolean'].includes(typeof field))
    const lines = plain.map(([name, field]) => (Array.isArray(part) ? String(field) : `${name}: ${field}`))
    if (lines.length > 0) facts.push({ text: lines.join(Array.isArray(part) ? '\n\n' : ', '), source })
    for (const field of Object.values(part)) walk(field, source, depth + 1)
  }
  walk(value, null, 0)
  return excerpts.length > 0 ? excerpts : facts
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
