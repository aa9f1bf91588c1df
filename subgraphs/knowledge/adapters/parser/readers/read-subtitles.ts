import { decodeText, warnOfReplaced } from '../decode-text.ts'
import type { DocumentBuilder } from './document-builder.ts'
import { LINE_ENDS } from './read-text.ts'

const TIMES = /^\s*(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}\s+-->\s+(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]\d{1,3}/

/** Reads SubRip (SRT) and WebVTT subtitles. Each text has its start and end time. */
export function readSubtitles(bytes: Uint8Array, builder: DocumentBuilder): void {
  const decoded = decodeText(bytes)
  warnOfReplaced(decoded, builder)
  const lines = decoded.text.split(LINE_ENDS)
  let before = ''
  for (let at = 0; at < lines.length; at += 1) {
    const times = TIMES.exec(lines[at]!)
    if (!times) continue
    const said: string[] = []
    while (at + 1 < lines.length && lines[at + 1]!.trim() !== '' && !TIMES.test(lines[at + 1]!)) {
      at += 1
      said.push(lines[at]!)
    }
    // This line is the number of the next cue, which follows without an empty line.
    if (at + 1 < lines.length && TIMES.test(lines[at + 1]!) && /^\d+$/.test(said.at(-1)?.trim() ?? '')) said.pop()
    const text = plain(said.join(' '))
    // Live captions repeat a line when it scrolls up.
    if (text === before) continue
    before = text
    builder.add('list_item', text, { location: { within: '', start: readTime(times, 1), end: readTime(times, 4) } })
  }
}

/** Formats a time as `00:01:05`. */
function readTime(times: RegExpExecArray, group: number): string {
  return [times[group] ?? '0', times[group + 1]!, times[group + 2]!].map((part) => part.padStart(2, '0')).join(':')
}

/** Removes position and style marks. WebVTT's speaker mark becomes a name. */
function plain(text: string): string {
  return text
    .replace(/<[^<>]{0,200}>/g, (tag) => (/^<v[. \t]/.test(tag) ? `${tag.slice(tag.indexOf(' ') + 1, -1)}: ` : ''))
    .replace(/\{\\[^{}]{0,100}\}/g, '')
    .replaceAll('&amp;', '&')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&nbsp;', ' ')
    .replace(/\s+/g, ' ')
    .trim()
}
