import { setImmediate } from 'node:timers/promises'
import { ParseFailure } from '../../../ports/document-parser.ts'
import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from './document-builder.ts'
import { outlineKeyOf, paragraphsOf } from './pdf-paragraphs.ts'
import { checkPdfStreams } from './pdf-streams.ts'

/** Pages named in a warning's message; all of them are in `pages`. */
const MAX_PAGES_NAMED = 20

/** Outlines are attacker-made trees too. */
const MAX_OUTLINE_TITLES = 10_000
/** Shorter titles match lines by chance. */
const LEAST_TITLE_CHARS = 3

interface OutlineItem {
  readonly title: unknown
  readonly items: readonly OutlineItem[]
}

/** Text of each page in the order in which pdf.js gives it, made into paragraphs. Gives the number of pages. */
export async function readPdf(bytes: Uint8Array, builder: DocumentBuilder, limits: ParserLimits): Promise<number> {
  checkPdfStreams(bytes, limits.maxInflatedBytes)
  const { PDFParse } = await importPdfParse()
  const parser = new PDFParse({
    // pdf.js takes ownership of the bytes, so it gets a copy of its own.
    data: new Uint8Array(bytes),
    verbosity: 0,
    isEvalSupported: false,
    useSystemFonts: false,
    useWorkerFetch: false,
    useWasm: false,
    cMapUrl: cMapFolder(),
    cMapPacked: true,
  })
  const total = await pageCountOf(parser)
  if (total > limits.maxPages) throw new ParseFailure('limit_exceeded', `The PDF has ${total} pages; at most ${limits.maxPages} are read.`)
  const outline = await outlineOf(parser)
  const empty: number[] = []
  for (let page = 1; page <= total; page += 1) {
    // pdf.js works in microtasks only; between pages timers get their turn, the one that looks for the parent among them.
    await setImmediate()
    const text = await pageTextOf(parser, page)
    const paragraphs = paragraphsOf(text, outline)
    if (paragraphs.length === 0) empty.push(page)
    for (const { kind, text, level } of paragraphs) builder.add(kind, text, { page, ...(level !== undefined && { level }) })
  }
  if (empty.length === total)
    throw new ParseFailure('no_text', 'The PDF has no text: its pages are pictures or drawings, which are not read.')
  if (empty.length > 0) builder.warn('pages_without_text', `${empty.length} of ${total} pages have no text: ${listOf(empty)}.`, empty)
  return total
}

/**
 * pdf.js wants a browser's drawing classes when it loads, and finds them in a native package that a child may not load. Text needs none of
 * them, so empty ones stand in.
 */
async function importPdfParse() {
  for (const name of ['DOMMatrix', 'ImageData', 'Path2D']) {
    if (!(name in globalThis)) Object.defineProperty(globalThis, name, { value: class {} })
  }
  return import('pdf-parse')
}

type Parser = InstanceType<Awaited<ReturnType<typeof importPdfParse>>['PDFParse']>

/** Tables of character codes for fonts that only name theirs, CJK ones above all. */
function cMapFolder(): string {
  return new URL('../../cmaps/', import.meta.resolve('pdfjs-dist/legacy/build/pdf.mjs')).pathname
}

async function pageCountOf(parser: Parser): Promise<number> {
  try {
    // Asking for no page opens the document and counts.
    return (await parser.getText({ partial: [0] })).total
  } catch (error) {
    if (error instanceof Error && error.name === 'PasswordException')
      throw new ParseFailure('password_required', 'The PDF opens with a password only.')
    throw new ParseFailure('corrupt', 'The PDF cannot be opened: it is damaged or cut off.')
  }
}

/** Titles of the document's outline with their levels, 1 to 6, by `outlineKeyOf`; none when there is no outline or it is damaged. */
async function outlineOf(parser: Parser): Promise<ReadonlyMap<string, number>> {
  const levels = new Map<string, number>()
  const info = await parser.getInfo().catch(() => undefined)
  const open: { readonly items: readonly OutlineItem[]; readonly level: number }[] = [{ items: info?.outline ?? [], level: 1 }]
  for (let next = open.pop(); next; next = open.pop()) {
    for (const { title, items } of next.items) {
      if (levels.size >= MAX_OUTLINE_TITLES) return levels
      const key = outlineKeyOf(String(title))
      if (key.length >= LEAST_TITLE_CHARS && !levels.has(key)) levels.set(key, Math.min(next.level, 6))
      if (Array.isArray(items)) open.push({ items, level: next.level + 1 })
    }
  }
  return levels
}

/** A page that fails is a page without text; the others are still worth having. */
async function pageTextOf(parser: Parser, page: number): Promise<string> {
  try {
    const { pages } = await parser.getText({ partial: [page], cellSeparator: '' })
    return pages[0]?.text ?? ''
  } catch {
    return ''
  }
}

function listOf(pages: readonly number[]): string {
  const named = pages.slice(0, MAX_PAGES_NAMED).join(', ')
  return pages.length > MAX_PAGES_NAMED ? `${named} and others` : named
}
