import { ParseFailure } from '../../../ports/document-parser.ts'
import type { DocumentBuilder } from '../readers/document-builder.ts'
import { addTable, type TableCell } from '../tables/add-table.ts'
import { charsetOfCodePage, charsetOfFont } from './rtf-charsets.ts'
import { rtfTokens } from './rtf-tokens.ts'

/** Groups whose text is not part of the document. Groups that are marked as optional are also omitted. */
const NOT_TEXT = new Set(
  'fonttbl colortbl stylesheet info pict object objdata fldinst themedata colorschememapping datastore xmlnstbl listtable listoverridetable revtbl rsidtbl generator filetbl annotation atnid atnauthor atntime atnicn bkmkstart bkmkend template nonshppict shprslt mmath userprops latentstyles pgdsctbl docvar'.split(
    ' ',
  ),
)
/** Optional groups whose text is part of the document. */
const OPTIONAL_TEXT = new Set(['shptxt', 'fldrslt', 'footnote', 'endnote'])
const HEADERS = new Set(['header', 'headerl', 'headerr', 'headerf', 'footer', 'footerl', 'footerr', 'footerf'])
const CHARACTERS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    tab: '\t',
    line: '\u2028',
    nbsp: '\u00a0',
    nbhyphen: '\u2011',
    emdash: '—',
    endash: '–',
    bullet: '•',
    lquote: '‘',
    rquote: '’',
    ldblquote: '“',
    rdblquote: '”',
    emspace: ' ',
    enspace: ' ',
    zwnj: '\u200c',
    zwj: '\u200d',
    ltrmark: '\u200e',
    rtlmark: '\u200f',
  }),
)
/** Maximum nesting depth of groups. Programs write about a dozen levels. */
const MAX_DEPTH = 500

/** The state that a nested group inherits. It ends with the group. */
interface Group {
  readonly isText: boolean
  /** The destination of the group's text if it is not the paragraph: a note, or a header or footer. */
  readonly aside: 'note' | 'header' | null
  readonly isFontTable: boolean
  charset: string | undefined
  isHidden: boolean
  /** Characters after a `\u` that replace it in programs without Unicode. */
  skipped: number
}

/**
 * Reads rich text: paragraphs, headings by their outline level, tables, notes after their paragraph, and headers and
 * footers once. The text contains the numbers of lists.
 * @throws {ParseFailure} `limit_exceeded` if the document exceeds a limit.
 */
export function readRtf(bytes: Uint8Array, builder: DocumentBuilder): void {
  new RtfReader(builder).read(bytes)
}

class RtfReader {
  readonly #builder: DocumentBuilder
  readonly #groups: Group[] = []
  readonly #fonts = new Map<number, string>()
  readonly #headers = new Set<string>()
  #group: Group = { isText: true, aside: null, isFontTable: false, charset: undefined, isHidden: false, skipped: 1 }
  #codePage = 'windows-1252'
  #font = 0
  #isOptional = false
  /** True right after the start of a group. The first word names the group's kind. */
  #isFirst = false
  #toSkip = 0
  #pending: number[] = []
  #pendingCharset = ''
  #line: string[] = []
  #aside: string[] = []
  #notes: string[] = []
  #level = 0
  #isInTable = false
  #cells: TableCell[] = []
  #rows: (readonly TableCell[])[] = []

  constructor(builder: DocumentBuilder) {
    this.#builder = builder
  }

  read(bytes: Uint8Array): void {
    for (const token of rtfTokens(bytes)) {
      if (token.kind === 'bytes') this.#addBytes(token.bytes)
      else {
        this.#flushBytes()
        if (token.kind === 'open') this.#open()
        else if (token.kind === 'close') this.#close()
        else if (token.kind === 'optional') this.#isOptional = true
        else this.#word(token.name, token.value)
      }
    }
    this.#flushBytes()
    this.#endParagraph()
    this.#endTable()
  }

  #open(): void {
    if (this.#groups.length >= MAX_DEPTH)
      throw new ParseFailure('limit_exceeded', `The document has groups more than ${MAX_DEPTH} levels deep.`)
    this.#groups.push(this.#group)
    this.#group = { ...this.#group }
    this.#isFirst = true
    this.#isOptional = false
    this.#toSkip = 0
  }

  #close(): void {
    const outer = this.#groups.pop()
    if (!outer) return
    if (this.#group.aside !== outer.aside) this.#endAside()
    this.#group = outer
    this.#isFirst = false
    this.#toSkip = 0
  }

  #endAside(): void {
    const text = this.#aside.join('').trim()
    this.#aside = []
    if (text === '') return
    if (this.#group.aside === 'note') this.#notes.push(text)
    else if (!this.#headers.has(text)) {
      this.#headers.add(text)
      this.#builder.add('paragraph', text)
    }
  }

  #word(name: string, value: number | undefined): void {
    if (this.#isFirst) {
      this.#isFirst = false
      const { isText, aside } = this.#group
      const isUnknown = this.#isOptional && !OPTIONAL_TEXT.has(name)
      this.#group = {
        ...this.#group,
        isText: OPTIONAL_TEXT.has(name) || (isText && !isUnknown && !NOT_TEXT.has(name)),
        aside: aside ?? (name === 'footnote' || name === 'endnote' ? 'note' : HEADERS.has(name) ? 'header' : null),
        isFontTable: this.#group.isFontTable || name === 'fonttbl',
      }
    }
    if (name === 'u') this.#addUnicode(value ?? 0)
    else if (name === 'uc') this.#group.skipped = Math.max(0, value ?? 1)
    else if (name === 'ansicpg') this.#codePage = charsetOfCodePage(value)
    else if (name === 'mac') this.#codePage = 'macintosh'
    else if (name === 'f') this.#useFont(value ?? 0)
    else if (name === 'fcharset' && this.#group.isFontTable) this.#defineFont(value)
    else if (name === 'v') this.#group.isHidden = value !== 0
    else if (name === 'deleted') this.#group.isHidden = value !== 0
    else if (name === 'plain') this.#group.isHidden = false
    else if (this.#group.isText) this.#layOut(name, value)
  }

  #useFont(font: number): void {
    this.#font = font
    if (!this.#group.isFontTable) this.#group.charset = this.#fonts.get(font)
  }

  #defineFont(charset: number | undefined): void {
    const found = charsetOfFont(charset)
    if (found) this.#fonts.set(this.#font, found)
  }

  #layOut(name: string, value: number | undefined): void {
    const character = CHARACTERS.get(name)
    if (character !== undefined) this.#addText(character)
    else if (this.#group.aside !== null) {
      if (name === 'par') this.#addText(' ')
    } else if (name === 'par' || name === 'sect' || name === 'page') {
      if (this.#isInTable) this.#addText(' ')
      else this.#endParagraph()
    } else if (name === 'pard') {
      this.#level = 0
      this.#isInTable = false
    } else if (name === 'intbl') this.#isInTable = true
    else if (name === 'outlinelevel') this.#level = value !== undefined && value >= 0 && value < 9 ? Math.min(6, value + 1) : 0
    else if (name === 'cell' || name === 'nestcell') {
      this.#cells.push({ text: this.#line.join('').replace(/\s+/g, ' ').trim() })
      this.#line = []
    } else if (name === 'row' || name === 'nestrow') {
      this.#rows.push(this.#cells)
      this.#cells = []
    }
  }

  #endParagraph(): void {
    const text = this.#line.join('')
    this.#line = []
    const notes = this.#notes
    this.#notes = []
    if (text.trim() !== '' || notes.length > 0) this.#endTable()
    this.#builder.add(this.#level > 0 ? 'heading' : 'paragraph', text, this.#level > 0 ? { level: this.#level } : {})
    for (const note of notes) this.#builder.add('paragraph', note)
  }

  #endTable(): void {
    if (this.#cells.length > 0) this.#rows.push(this.#cells)
    addTable(this.#rows, this.#builder)
    this.#cells = []
    this.#rows = []
  }

  #addUnicode(value: number): void {
    // RTF writes the value as a signed 16-bit number.
    this.#addText(String.fromCharCode(value < 0 ? value + 65_536 : value))
    this.#toSkip = this.#group.skipped
  }

  #addBytes(bytes: Uint8Array): void {
    this.#isFirst = false
    const skipped = Math.min(this.#toSkip, bytes.length)
    this.#toSkip -= skipped
    if (!this.#group.isText || skipped === bytes.length) return
    const charset = this.#group.charset ?? this.#codePage
    if (charset !== this.#pendingCharset) this.#flushBytes()
    this.#pendingCharset = charset
    for (const byte of bytes.subarray(skipped)) this.#pending.push(byte)
  }

  /** Decodes the pending bytes. They are collected because the bytes of one character may span several tokens. */
  #flushBytes(): void {
    if (this.#pending.length === 0) return
    this.#addText(new TextDecoder(this.#pendingCharset).decode(Uint8Array.from(this.#pending)))
    this.#pending = []
  }

  #addText(text: string): void {
    if (!this.#group.isText || this.#group.isHidden) return
    if (this.#group.aside === null) this.#line.push(text)
    else this.#aside.push(text)
  }
}
