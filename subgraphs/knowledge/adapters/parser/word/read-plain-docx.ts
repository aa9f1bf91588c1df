import mammoth from 'mammoth'
import type { ParserLimits } from '../limits.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { addTable, type TableCell } from '../tables/add-table.ts'
import { relationshipsOf } from '../xml/office-package.ts'
import { findAttribute, readXml, type XmlElement } from '../xml/xml.ts'
import type { ZipArchive } from '../zip.ts'
import { packParts } from './pack-parts.ts'
import type { WordStyle } from './word-styles.ts'

/**
 * Maximum bytes of a body that mammoth reads. mammoth has the whole body in memory and takes 4 times the CPU of
 * `read-docx.ts`.
 */
const MAX_XML_BYTES = 512 * 1024

/**
 * Elements of numbers, merged cells, boxes, notes, hidden text and fields. mammoth does not report everything that Word
 * shows of them.
 */
const MORE = new Set(
  'numPr gridSpan vMerge hMerge cellDel txbxContent AlternateContent footnoteReference endnoteReference vanish outlineLvl fldSimple checkbox checkBox sym'.split(
    ' ',
  ),
)

/** mammoth's messages about an element, a break or a symbol that it omits. */
const NOT_READ = /unrecognised element|unsupported/i

/** An element of mammoth's document, as passed to its transforms. */
interface Part {
  readonly type: string
  readonly value?: string
  readonly styleId?: string | null
  readonly isHeader?: boolean
  readonly children?: readonly Part[]
}

type Styles = ReadonlyMap<string, WordStyle>

/**
 * Reads the body of a Word document with mammoth. Returns undefined if it is too large, or contains elements that
 * mammoth does not support.
 * @param main the name of the part with the body
 * @throws {ParseFailure} `corrupt` if the XML of the body is not well-formed.
 */
export async function readPlainBody(archive: ZipArchive, main: string, styles: Styles, limits: ParserLimits): Promise<Part | undefined> {
  if (!(await isPlain(archive, main, styles, limits))) return undefined
  const buffer = await packParts(archive, ['[Content_Types].xml', '_rels/.rels', main, relationshipsOf(main)])
  let body: Part | undefined
  const transformDocument = (document: Part) => {
    body = document
    return { ...document, children: [] }
  }
  try {
    const { messages } = await mammoth.convertToHtml({ buffer }, { transformDocument, externalFileAccess: false })
    return messages.some(({ message }) => NOT_READ.test(message)) ? undefined : body
  } catch {
    return undefined
  }
}

async function isPlain(archive: ZipArchive, main: string, styles: Styles, limits: ParserLimits): Promise<boolean> {
  let bytes = 0
  async function* pieces() {
    for await (const piece of archive.piecesOf(main)) {
      bytes += piece.length
      if (bytes > MAX_XML_BYTES) throw MORE
      yield piece
    }
  }
  const check = (element: XmlElement) => {
    const list = element.name === 'pStyle' ? styles.get(findAttribute(element, 'val') ?? '')?.list : undefined
    if (MORE.has(element.name) || (list !== undefined && list !== '0')) throw MORE
  }
  try {
    await readXml(pieces(), limits, check, { units: new Set([...MORE, 'pStyle']) })
    return true
  } catch (error) {
    if (error !== MORE) throw error
    return false
  }
}

/** Adds the blocks of a body, in mammoth's form. */
export function addPlainBody({ children = [] }: Part, styles: Styles, builder: DocumentBuilder): void {
  for (const part of children) {
    if (part.type === 'paragraph') {
      const { heading } = styles.get(part.styleId ?? '') ?? {}
      builder.add(heading ? 'heading' : 'paragraph', readText(part), heading ? { level: heading } : {})
    } else if (part.type === 'table') addPlainTable(part, styles, builder)
    else addPlainBody(part, styles, builder)
  }
}

function addPlainTable({ children: rows = [] }: Part, styles: Styles, builder: DocumentBuilder): void {
  if (rows.every(({ children: cells = [] }) => cells.length <= 1)) for (const row of rows) addPlainBody(row, styles, builder)
  else
    addTable(
      rows.map(({ children: cells = [], isHeader = false }) => cells.map((cell): TableCell => ({ text: joinLines(cell), isHeader }))),
      builder,
    )
}

function joinLines(part: Part): string {
  const lines = (parent: Part): readonly string[] =>
    parent.type === 'paragraph' ? [readText(parent).trim()] : (parent.children ?? []).flatMap(lines)
  return lines(part)
    .join(' ')
    .replace(/[\s\u2028]+/g, ' ')
    .trim()
}

function readText({ type, value = '', children = [] }: Part): string {
  if (type === 'text') return value
  if (type === 'tab') return '\t'
  return type === 'break' ? '\u2028' : children.map(readText).join('')
}
