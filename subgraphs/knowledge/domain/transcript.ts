import type { Block, ParsedDocument } from '../ports/document-parser.ts'
import type { SpokenSegment } from '../ports/inference.ts'
import { normaliseText } from './text/normalise-text.ts'

/** Converts a transcript to a document. Each segment becomes a line with its times as the location, like subtitles. */
export function toTranscript(mediaType: string, segments: readonly SpokenSegment[]): ParsedDocument {
  const lines: string[] = []
  const blocks: Block[] = []
  let length = 0
  for (const { start, end, text } of segments) {
    const line = normaliseText(text).replace(/\s+/g, ' ')
    if (line === '') continue
    const charStart = length + (lines.length === 0 ? 0 : 1)
    length = charStart + line.length
    lines.push(line)
    const location = { within: '', start: formatTime(Math.floor(start)), end: formatTime(Math.ceil(end)) }
    blocks.push({ kind: 'list_item', charStart, charEnd: length, location })
  }
  return { mediaType, text: lines.join('\n'), blocks, pageCount: null, warnings: [], unread: [], hasFiles: false }
}

/** Formats whole seconds as `00:01:05`. */
function formatTime(seconds: number): string {
  return [seconds / 3_600, (seconds / 60) % 60, seconds % 60].map((part) => String(Math.floor(part)).padStart(2, '0')).join(':')
}
