import { decodeText, warnOfReplaced } from '../decode-text.ts'
import type { DocumentBuilder } from './document-builder.ts'

/** If lines are longer than this on average, each line is an unwrapped paragraph. Shorter lines are wrapped by hand. */
const UNWRAPPED_CHARS = 120

export const LINE_ENDS = /\r\n?|\n/

/** Reads plain text: paragraphs between empty lines, or one paragraph per line if the lines are not wrapped. */
export function readText(bytes: Uint8Array, builder: DocumentBuilder): void {
  const decoded = decodeText(bytes)
  warnOfReplaced(decoded, builder)
  addText(decoded.text, builder)
}

/** Adds the paragraphs of plain text. */
export function addText(text: string, builder: DocumentBuilder): void {
  const lines = text.split(LINE_ENDS)
  const filled = lines.filter((line) => line.trim() !== '')
  const chars = filled.reduce((sum, line) => sum + line.length, 0)
  if (chars > filled.length * UNWRAPPED_CHARS) {
    for (const line of filled) builder.add('paragraph', line)
    return
  }
  let paragraph: string[] = []
  for (const line of [...lines, '']) {
    if (line.trim() !== '') paragraph.push(line)
    else if (paragraph.length > 0) {
      builder.add('paragraph', paragraph.join('\n'))
      paragraph = []
    }
  }
}
