import { decodeText, warnOfReplaced } from '../decode-text.ts'
import type { DocumentBuilder } from './document-builder.ts'
import { LINE_ENDS } from './read-text.ts'

/** Reads source code. Parts between empty lines become blocks with line numbers. */
export function readSource(bytes: Uint8Array, builder: DocumentBuilder): void {
  const decoded = decodeText(bytes)
  warnOfReplaced(decoded, builder)
  const lines = decoded.text.split(LINE_ENDS)
  let start = 0
  for (let at = 0; at <= lines.length; at += 1) {
    if (at < lines.length && lines[at]!.trim() !== '') continue
    if (at > start)
      builder.add('code', lines.slice(start, at).join('\n'), { location: { within: 'line ', start: `${start + 1}`, end: `${at}` } })
    start = at + 1
  }
}
