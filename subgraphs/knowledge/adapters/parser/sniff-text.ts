import { CSV, EML, HTML, JSON_TEXT, MARKDOWN, MBOX, MHT, SOURCE, SRT, TEXT, TSV, VTT, XML } from '../../domain/media-types.ts'
import { decodeText } from './decode-text.ts'
import { measureShape } from './delimited.ts'

/** Formats that only the extension identifies, because their content looks like plain text. */
const EXTENSIONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    md: MARKDOWN,
    markdown: MARKDOWN,
    html: HTML,
    htm: HTML,
    xhtml: HTML,
    csv: CSV,
    tsv: TSV,
    tab: TSV,
    xml: XML,
    json: JSON_TEXT,
    jsonl: JSON_TEXT,
    ndjson: JSON_TEXT,
    ...Object.fromEntries(
      'bash bat c cc conf cpp cs css dart ex go gradle graphql h hpp hs ini java jl js jsx kt less lua m mjs php pl proto ps1 py r rb rs scala scss sh sql svelte swift toml ts tsx vb vue yaml yml zig'
        .split(' ')
        .map((extension) => [extension, SOURCE]),
    ),
  }),
)

/** Minimum lines, all with the same number of cells, of a table without a table's extension. */
const LEAST_TABLE_LINES = 5
const LEAST_COLUMNS: readonly (readonly [delimiter: string, columns: number, mediaType: string])[] = [
  ['\t', 2, TSV],
  [',', 3, CSV],
  [';', 3, CSV],
]

const SUBRIP = /^\s*(?:\d{1,6}\s*\n)?\d{1,3}:\d{2}:\d{2}[,.]\d{1,3}\s+-->\s/
/** Matches the start of JSON: an object with a quoted name, or a list of objects, lists or strings. */
const JSON_START = /^\s*(?:\{\s*(?:"[^"\n]{0,200}"\s*:|\}\s*$)|\[\s*(?:\{\s*["}]|\[\s*["[{\d-]|"[^"\n]{0,1000}"\s*[,\]]|\]\s*$))/
const HEADER_LINE = /^([!-9;-~]{1,80}):(?:[ \t]|$)/
const MAIL_HEADERS = new Set(
  'from to cc subject date received return-path message-id mime-version delivered-to content-type x-mailer'.split(' '),
)

/** Returns the media type of a text by the start of the text and, if that is ambiguous, by the extension. */
export function sniffText(head: Uint8Array, extension: string): string {
  const text = decodeText(head)
    .text.replace(/^\ufeff/, '')
    .replace(/\r\n?/g, '\n')
  if (/^WEBVTT(?:[ \t\n]|$)/.test(text)) return VTT
  if (SUBRIP.test(text)) return SRT
  const mail = mailType(text, extension)
  if (mail) return mail
  const kind = EXTENSIONS.get(extension)
  if (/^\s*<\?xml\b|^\s*<!DOCTYPE\s/i.test(text) || (/^\s*</.test(text) && !kind)) {
    const markup = markupType(text, extension)
    if (markup) return markup
  }
  if (kind !== SOURCE && kind !== MARKDOWN && JSON_START.test(text)) return JSON_TEXT
  return kind ?? tableType(text) ?? TEXT
}

function mailType(text: string, extension: string): string | undefined {
  const isMailbox = /^From \S[^\n]{0,200}\b\d{4}\b[^\n]{0,50}\n/.test(text)
  const headers = new Map<string, string>()
  for (const line of text.slice(isMailbox ? text.indexOf('\n') + 1 : 0).split('\n', 200)) {
    if (/^[ \t]/.test(line) && headers.size > 0) continue
    const name = HEADER_LINE.exec(line)?.[1]
    if (name === undefined) break
    headers.set(name.toLowerCase(), line)
  }
  const known = [...headers.keys()].filter((name) => MAIL_HEADERS.has(name)).length
  if (known < 2 || !(headers.has('from') || headers.has('mime-version') || headers.has('received'))) return undefined
  if (isMailbox) return MBOX
  const isPage =
    /multipart\/related/i.test(text.slice(0, 4_096)) && (headers.has('snapshot-content-location') || /^mht(?:ml)?$/.test(extension))
  return isPage || /^from:\s*<?Saved by /i.test(headers.get('from') ?? '') ? MHT : EML
}

/** Distinguishes HTML from XML. Returns undefined for a text that only starts with a tag. */
function markupType(text: string, extension: string): string | undefined {
  const root = findRoot(text)
  if (root && /^(?:html|head|body)$/i.test(root)) return HTML
  if (/^\s*<!doctype html/i.test(text)) return HTML
  if (!/^\s*<\?xml\b/i.test(text)) return undefined
  return EXTENSIONS.get(extension) === HTML ? HTML : XML
}

/** Returns the name of the first element, after comments, declarations and instructions. */
function findRoot(text: string): string | undefined {
  let at = 0
  for (;;) {
    while (/\s/.test(text[at] ?? '')) at += 1
    const end = text.startsWith('<!--', at) ? '-->' : text.startsWith('<?', at) ? '?>' : text.startsWith('<!', at) ? '>' : undefined
    if (end === undefined) return /^<([A-Za-z_][\w:.-]{0,80})/.exec(text.slice(at, at + 100))?.[1]
    const close = text.indexOf(end, at)
    const subset = end === '>' ? text.indexOf('[', at) : -1
    const next = subset >= 0 && subset < close ? text.indexOf(']>', at) + 1 : close
    if (next <= 0) return undefined
    at = next + end.length
  }
}

function tableType(text: string): string | undefined {
  // The end of the head may truncate the last line.
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  for (const [delimiter, least, mediaType] of LEAST_COLUMNS) {
    const { alike, columns, rows } = measureShape(whole, delimiter)
    if (rows >= LEAST_TABLE_LINES && alike === rows && columns >= least) return mediaType
  }
  return undefined
}
