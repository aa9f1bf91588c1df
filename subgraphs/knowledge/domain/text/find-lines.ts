import { normaliseText } from './normalise-text.ts'

/** A range of a text in UTF-16 offsets. */
interface Range {
  readonly start: number
  readonly end: number
}

/**
 * Locates the lines from which a text was assembled. Normalizing and joining change white space but retain the order of
 * all other characters.
 * @param text normalized
 */
export function findLines(text: string, lines: readonly string[]): readonly Range[] {
  const found: Range[] = []
  let at = 0
  for (const [index, line] of lines.entries()) {
    while (at < text.length && isSpace(text[at]!)) at += 1
    const start = at
    let left = countVisible(normaliseText(line))
    for (; left > 0 && at < text.length; at += 1) if (!isSpace(text[at]!)) left -= 1
    if (index === lines.length - 1) at = text.length
    found.push({ start, end: at })
  }
  return found
}

function countVisible(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at += 1) if (!isSpace(text[at]!)) count += 1
  return count
}

function isSpace(unit: string): boolean {
  return unit.trim() === ''
}
