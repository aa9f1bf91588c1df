import { type DefaultTreeAdapterTypes, parse } from 'parse5'
import { decodeText, warnOfReplaced } from '../decode-text.ts'
import { formatNumber, type Numbering } from '../numbering/format-number.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { findElements, isElement, isHidden, readClasses, readText, walk } from './html-tree.ts'
import { isDataTable, readTable } from './read-html-table.ts'

type Node = DefaultTreeAdapterTypes.Node
type Element = DefaultTreeAdapterTypes.Element

/** Browsers look for a page's charset in its first 1,024 bytes (HTML, section 13.2.3.2). */
const CHARSET_WITHIN_BYTES = 1024

/** Elements that do not interrupt a line of text. All other elements begin a block and end the previous one. */
const INLINE = new Set(
  'a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q rp rt ruby s samp small span strike strong sub sup time tt u var wbr'.split(
    ' ',
  ),
)

const META_CHARSET = /<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})/i
const XML_CHARSET = /^<\?xml[^>]{0,100} encoding=["']([\w-]{1,40})/

/** Elements without an end tag. */
const VOID = new Set('area base br col embed hr img input link meta source track wbr'.split(' '))

/** Stands for `<br>` while white space is folded. Normalising turns it into a line feed. */
const LINE_BREAK = '\u2028'

interface Context {
  readonly element: Element
  readonly kind: 'heading' | 'list_item' | 'code'
  readonly level?: number
  /** The number of an ordered item, which goes before its first text. */
  marker?: string
}

/**
 * Reads a page's main content: headings, paragraphs, lists, tables and preformatted text. Leaves out navigation,
 * scripts and hidden elements.
 */
export function readHtml(bytes: Uint8Array, builder: DocumentBuilder): void {
  const head = Buffer.from(bytes.subarray(0, CHARSET_WITHIN_BYTES)).toString('latin1')
  const decoded = decodeText(bytes, (META_CHARSET.exec(head) ?? XML_CHARSET.exec(head))?.[1])
  warnOfReplaced(decoded, builder)
  readHtmlPage(
    /^(?:\u00ef\u00bb\u00bf)?\s*<\?xml|http:\/\/www\.w3\.org\/1999\/xhtml/.test(head) ? asHtml(decoded.text) : decoded.text,
    builder,
  )
}

/** Reads a page that is decoded already. */
export function readHtmlPage(html: string, builder: DocumentBuilder): void {
  const document = parse(html)
  const main = findMainContent(document)
  if (!findElements(main, 'h1').next().value) {
    const title = findElements(document, 'title').next().value
    if (title) builder.add('heading', readText(title), { level: 1 })
  }
  readContent(main, builder)
}

/**
 * Closes empty elements of XHTML explicitly. HTML would leave them open, so that an empty `<title/>` would contain the
 * whole page.
 */
function asHtml(xhtml: string): string {
  return xhtml.replace(/<([a-zA-Z][\w:-]{0,50})((?:\s[^<>]*)?)\/>/g, (tag, name, attributes) =>
    VOID.has(String(name).toLowerCase()) ? tag : `<${name}${attributes}></${name}>`,
  )
}

/** Reads all content of HTML that is a part of something else, such as a message. */
export function readHtmlText(html: string, builder: DocumentBuilder): void {
  readContent(parse(html), builder)
}

function findMainContent(document: Node): Node {
  for (const { node, leaving, skip } of walk(document)) {
    if (leaving || !isElement(node)) continue
    const isMain = node.tagName === 'main' || node.attrs.some(({ name, value }) => name === 'role' && value === 'main')
    if (!isMain) continue
    if (readText(node).trim() !== '') return node
    // Elements inside this one have no text either.
    skip()
  }
  const articles = [...findElements(document, 'article')]
  return articles.length === 1 ? articles[0]! : document
}

function readContent(root: Node, builder: DocumentBuilder): void {
  const contexts: Context[] = []
  let line: string[] = []
  const flush = () => {
    const context = contexts.at(-1)
    const raw = line.join('')
    line = []
    const text = context?.kind === 'code' ? raw : foldSpace(raw)
    if (text.trim() === '') return
    builder.add(
      context?.kind ?? 'paragraph',
      context?.marker ? `${context.marker} ${text.trim()}` : text,
      context?.level ? { level: context.level } : {},
    )
    if (context?.marker) delete context.marker
  }
  for (const { node, leaving, skip } of walk(root)) {
    if (!isElement(node)) {
      if (node.nodeName === '#text' && 'value' in node)
        line.push(contexts.at(-1)?.kind === 'code' ? node.value : node.value.replaceAll(LINE_BREAK, ' '))
      continue
    }
    if (leaving) {
      if (isNoteNumber(node)) line.push(' ')
      if (INLINE.has(node.tagName) || node.tagName === 'br') continue
      flush()
      if (contexts.at(-1)?.element === node) contexts.pop()
    } else if (isHidden(node) || isBackLink(node)) skip()
    else if (node.tagName === 'br') line.push(LINE_BREAK)
    else if (!INLINE.has(node.tagName)) {
      flush()
      if (node.tagName === 'table' && isDataTable(node)) {
        readTable(node, builder)
        skip()
      }
      const context = readContext(node)
      if (context) contexts.push(context)
    }
  }
  flush()
}

function readContext(element: Element): Context | undefined {
  const heading = /^h([1-6])$/.exec(element.tagName)
  if (heading) return { element, kind: 'heading', level: Number(heading[1]) }
  if (element.tagName === 'pre') return { element, kind: 'code' }
  if (element.tagName !== 'li') return undefined
  const { parentNode: list } = element
  if (list?.nodeName !== 'ol' || !isElement(list)) return { element, kind: 'list_item' }
  const isReversed = list.attrs.some(({ name }) => name === 'reversed')
  const explicit = readInteger(element, 'value')
  const before = numbers.get(list)
  const first = readInteger(list, 'start') ?? (isReversed ? countItems(list) : 1)
  const number = explicit ?? (before === undefined ? first : before + (isReversed ? -1 : 1))
  numbers.set(list, number)
  return { element, kind: 'list_item', marker: `${formatNumber(number, NUMBERINGS.get(findAttribute(list, 'type') ?? '') ?? 'decimal')}.` }
}

/** The last number of each ordered list. Counting the siblings of each item would take quadratic time. */
const numbers = new WeakMap<object, number>()

/** The meaning of a list's `type` (HTML, section 4.4.5). */
const NUMBERINGS: ReadonlyMap<string, Numbering> = new Map([
  ['a', 'lowerLetter'],
  ['A', 'upperLetter'],
  ['i', 'lowerRoman'],
  ['I', 'upperRoman'],
])

function readInteger(element: Element, name: string): number | undefined {
  const value = Number.parseInt(findAttribute(element, name) ?? '', 10)
  return Number.isSafeInteger(value) ? value : undefined
}

function findAttribute(element: Element, name: string): string | undefined {
  return element.attrs.find((attribute) => attribute.name === name)?.value
}

function countItems(list: Element): number {
  return list.childNodes.filter((child) => isElement(child) && child.tagName === 'li').length
}

/** Reports whether an element links from a footnote back to the text, as in converted documents and on Wikipedia. */
function isBackLink(element: Element): boolean {
  if (element.tagName === 'a') return element.attrs.some(({ name, value }) => name === 'href' && /^#(?:foot|end)note-ref/.test(value))
  return readClasses(element).includes('mw-cite-backlink')
}

/** Reports whether an element is the number before a note, as LibreOffice writes it, without a space. */
function isNoteNumber(element: Element): boolean {
  return element.tagName === 'a' && /^#(?:calledF\d|sd(?:foot|end)note\d+anc$)/.test(findAttribute(element, 'href') ?? '')
}

function foldSpace(text: string): string {
  return text.replace(/[ \t\n\r\f]+/g, ' ').replace(/ ?\u2028 ?/g, LINE_BREAK)
}
