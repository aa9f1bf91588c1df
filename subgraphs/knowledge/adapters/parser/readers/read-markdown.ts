import { decodeText, warnOfReplaced } from '../decode-text.ts'
import type { DocumentBuilder } from './document-builder.ts'
import { LINE_ENDS } from './read-text.ts'

const HEADING = /^ {0,3}(#{1,6})(?![^ \t])/
const UNDERLINE = /^ {0,3}(=+|-{2,})[ \t]*$/
const FENCE = /^ {0,3}(`{3,}|~{3,})/
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/
const ITEM = /^[ \t]*(?:[-*+]|(\d{1,9}[.)]))[ \t]+(.*)$/s
/** Matches a trimmed line below a table's header row. */
const DELIMITER_ROW = /^\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?)?$/

/**
 * Reads Markdown line by line: headings, lists, tables with their header row, fenced code and paragraphs. Removes
 * emphasis and link marks.
 */
export function readMarkdown(bytes: Uint8Array, builder: DocumentBuilder): void {
  const decoded = decodeText(bytes)
  warnOfReplaced(decoded, builder)
  const lines = withoutComments(decoded.text).split(LINE_ENDS)
  let at = readFrontMatter(lines, builder)
  let open: { kind: 'paragraph' | 'list_item'; lines: string[] } | undefined
  const close = () => {
    if (open) builder.add(open.kind, inline(open.lines.join('\n')))
    open = undefined
  }
  while (at < lines.length) {
    // Quoted lines are read as plain text.
    const line = lines[at]!.replace(/^ {0,3}(?:> ?)+/, '')
    const heading = HEADING.exec(line)
    const item = ITEM.exec(line)
    const underline = open?.kind === 'paragraph' && open.lines.length === 1 ? UNDERLINE.exec(line) : null
    if (FENCE.test(line)) {
      close()
      at = readFence(lines, at, builder)
      continue
    }
    if (underline) {
      builder.add('heading', inline(open!.lines[0]!), { level: underline[1]!.startsWith('=') ? 1 : 2 })
      open = undefined
    } else if (line.trim() === '' || RULE.test(line)) close()
    else if (heading) {
      close()
      builder.add('heading', inline(trimTitle(line.slice(heading[0].length))), { level: heading[1]!.length })
    } else if (line.includes('|') && DELIMITER_ROW.test((lines[at + 1] ?? '').trim())) {
      close()
      at = readTable(lines, at, builder)
      continue
    } else if (item) {
      close()
      open = { kind: 'list_item', lines: [item[1] ? `${item[1]} ${item[2]}` : item[2]!] }
    } else if (open) open.lines.push(line.trim())
    else open = { kind: 'paragraph', lines: [line.trim()] }
    at += 1
  }
  close()
}

/** Removes comments. A comment without an end is text. */
function withoutComments(text: string): string {
  const parts: string[] = []
  let at = 0
  for (;;) {
    const open = text.indexOf('<!--', at)
    const close = open < 0 ? -1 : text.indexOf('-->', open + '<!--'.length)
    if (close < 0) break
    parts.push(text.slice(at, open))
    at = close + '-->'.length
  }
  return [...parts, text.slice(at)].join('')
}

/** Returns the text of a heading without its closing marks. */
function trimTitle(text: string): string {
  const title = text.trim()
  let end = title.length
  while (title[end - 1] === '#') end -= 1
  const isClosed = end === 0 || title[end - 1] === ' ' || title[end - 1] === '\t'
  return isClosed ? title.slice(0, end).trimEnd() : title
}

/**
 * Adds the title of a YAML block at the top as the first heading, and omits its other fields. Returns the index of the
 * line after the block.
 */
function readFrontMatter(lines: readonly string[], builder: DocumentBuilder): number {
  const end = lines[0]?.trim() === '---' ? lines.indexOf('---', 1) : -1
  if (end < 0) return 0
  const title = lines.slice(1, end).find((line) => line.startsWith('title:'))
  if (title)
    builder.add(
      'heading',
      title
        .slice('title:'.length)
        .trim()
        .replace(/^(["'])(.*)\1$/, '$2'),
      { level: 1 },
    )
  return end + 1
}

function readFence(lines: readonly string[], start: number, builder: DocumentBuilder): number {
  const fence = FENCE.exec(lines[start]!.replace(/^ {0,3}(?:> ?)+/, ''))![1]!
  let end = start + 1
  while (end < lines.length && !lines[end]!.trim().startsWith(fence)) end += 1
  builder.add('code', lines.slice(start + 1, end).join('\n'))
  return end + 1
}

function readTable(lines: readonly string[], start: number, builder: DocumentBuilder): number {
  const tableHeader = toRow(lines[start]!)
  builder.add('table_row', tableHeader)
  let at = start + 2
  for (; at < lines.length && lines[at]!.includes('|'); at += 1) builder.add('table_row', toRow(lines[at]!), { tableHeader })
  return at
}

function toRow(line: string): string {
  const cells = line
    .trim()
    .replace(/^\|/, '')
    .replace(/\|$/, '')
    .split(/(?<!\\)\|/)
  return cells.map((cell) => inline(cell.replaceAll('\\|', '|')).trim()).join(' | ')
}

/**
 * Returns the text without marks: the words of links and images, no emphasis, no tags. The patterns have limited
 * lengths and never overlap the start of their next match, so that no input is slow.
 */
function inline(text: string): string {
  return text
    .replace(/!?\[([^[\]\n]{0,1000})\]\([^()\n]{0,2000}(?:\([^()\n]{0,500}\)[^()\n]{0,500})?\)/g, '$1')
    .replace(/!?\[([^[\]\n]{1,1000})\]\[[^[\]\n]{0,200}\]/g, '$1')
    .replace(/<(https?:\/\/[^<>\s]{1,2000})>/g, '$1')
    .replace(/<\/?[a-zA-Z][^<>]{0,2000}>/g, '')
    .replace(/(`{1,3})([^`\n]{1,1000})\1/g, '$2')
    .replace(/(\*\*\*|\*\*)(?=\S)([^*\n]{1,1000}?)(?<=\S)\1/g, '$2')
    .replace(/__(?=\S)((?:[^_\n]|_(?!_)){1,1000}?)(?<=\S)__/g, '$1')
    .replace(/(?<![\w*\\])\*(?=\S)([^*\n]{1,1000}?)(?<=\S)\*(?![\w*])/g, '$1')
    .replace(/\\([!-/:-@[-`{-~])/g, '$1')
}
