/** A part of a text, as UTF-16 offsets. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** Characters segmented at once. ICU's time and memory grow with its input. A longer sentence is cut here. */
const WINDOW_CHARS = 16_384

/**
 * Longer clusters are cut between code points. Unicode's stream-safe text format (UAX #15) allows 30 marks on a letter,
 * so nobody can read a longer one, and a cluster of a megabyte must not become one chunk.
 */
const MAX_GRAPHEME_CHARS = 256

const sentenceSegmenter = new Intl.Segmenter('ar', { granularity: 'sentence' })
const graphemeSegmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

/**
 * A full stop after these does not end a sentence: Arabic for Dr, Prof, (year) AD or metre, page, part or volume,
 * Hijri; and the commonest English ones. A mistake only keeps two sentences together.
 */
const ABBREVIATION = /(?:^|[\s([{«"“'])(?:د|أ|م|ص|ج|هـ|ه|Dr|Mr|Mrs|Ms|Prof|St|vs|No|Fig|e\.g|i\.e)\.\s*$/u

/** Longest tail in which an abbreviation is looked for, in characters. */
const TAIL_CHARS = 12

/**
 * The sentences of a text, in order and without gaps: each includes the white space after it. Cuts are between
 * graphemes.
 */
export function* splitSentences(text: string): Generator<Span> {
  let start = 0
  for (const end of findBreaks(text)) {
    const tail = text.slice(Math.max(start, end - TAIL_CHARS), end)
    if (end < text.length && end - start < WINDOW_CHARS && !tail.includes('\n') && ABBREVIATION.test(tail)) continue
    yield { start, end }
    start = end
  }
}

/**
 * Ends of ICU's sentences. The last segment of a window may continue after it, so the next window starts with it again.
 */
function* findBreaks(text: string): Generator<number> {
  let from = 0
  while (from < text.length) {
    const window = text.slice(from, from + WINDOW_CHARS)
    const isLast = from + window.length >= text.length
    let next = 0
    for (const { index, segment } of sentenceSegmenter.segment(window)) {
      const end = index + segment.length
      if (end === window.length && !isLast) break
      next = end
      yield from + end
    }
    if (next === 0) {
      next = lastGraphemeEnd(window)
      yield from + next
    }
    from += next
  }
}

/** The last place in the window where a cluster certainly ends. The window itself may end inside one. */
function lastGraphemeEnd(window: string): number {
  let last = window.length
  let previous = 0
  for (const { index } of splitGraphemes(window)) {
    if (index > 0) previous = index
  }
  if (previous > 0) last = previous
  return last
}

/** The grapheme clusters of a text. Overlong ones are split into code points. Linear and lazy. */
export function* splitGraphemes(text: string): Generator<{ readonly index: number; readonly segment: string }> {
  for (const { index, segment } of graphemeSegmenter.segment(text)) {
    if (segment.length <= MAX_GRAPHEME_CHARS) yield { index, segment }
    else {
      let at = index
      for (const point of segment) {
        yield { index: at, segment: point }
        at += point.length
      }
    }
  }
}
