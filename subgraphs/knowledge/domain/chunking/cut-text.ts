import { type Span, splitGraphemes } from './sentences.ts'

/** Characters read beyond the limit, to recognize a grapheme cluster that crosses it. */
const MARGIN_CHARS = 300

/**
 * Splits a span into parts of at most `maxChars`, without gaps. Cuts after a line feed or white space in the second
 * half of what fits, else between graphemes. Only a single grapheme may be longer.
 */
export function cutInto(text: string, { start, end }: Span, maxChars: number): readonly Span[] {
  const parts: Span[] = []
  let from = start
  while (end - from > maxChars) {
    const to = from + cutWithin(text.slice(from, Math.min(end, from + maxChars + MARGIN_CHARS)), maxChars)
    parts.push({ start: from, end: to })
    from = to
  }
  if (from < end) parts.push({ start: from, end })
  return parts
}

function cutWithin(window: string, maxChars: number): number {
  let any = 0
  let afterSpace = 0
  let afterLine = 0
  for (const { index, segment } of splitGraphemes(window)) {
    const end = index + segment.length
    if (end > maxChars && any > 0) break
    any = end
    if (end * 2 < maxChars) continue
    if (segment === '\n') afterLine = end
    else if (/^\s$/.test(segment)) afterSpace = end
  }
  return afterLine || afterSpace || any
}

/** Returns the text. A text of more than `maxChars` characters is truncated and gets an ellipsis. */
export function shorten(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  return `${text.slice(0, cutWithin(text.slice(0, maxChars + MARGIN_CHARS), maxChars - 1)).trimEnd()}…`
}
