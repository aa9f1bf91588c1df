/** A range of a text in UTF-16 offsets. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** Characters segmented at once. ICU's time and memory grow with its input. A longer sentence is cut here. */
const WINDOW_CHARS = 16_384

/**
 * Longer clusters are cut between code points. Unicode's stream-safe text format (UAX #15) allows 30 marks per letter,
 * so longer clusters are unreadable. A cluster of a megabyte must not become one chunk.
 */
const MAX_GRAPHEME_CHARS = 256

const sentenceSegmenter = new Intl.Segmenter('ar', { granularity: 'sentence' })
const graphemeSegmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

/**
 * A full stop after these abbreviations does not end a sentence. The Arabic ones mean Dr, Prof, AD (year) or meter,
 * page, part or volume, and Hijri. The rest are the most common English ones. A mistake only joins two sentences.
 */
const ABBREVIATION = /(?:^|[\s([{«"“'])(?:د|أ|م|ص|ج|هـ|ه|Dr|Mr|Mrs|Ms|Prof|St|vs|No|Fig|e\.g|i\.e)\.\s*$/u

/** Characters at the end of a sentence that are searched for an abbreviation. */
const TAIL_CHARS = 12

/**
 * Yields the sentences of a text, in order and without gaps. Each includes the white space after it. Cuts are between
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
 * Yields the ends of ICU's sentences. The last segment of a window may continue beyond it, so the next window starts
 * with that segment.
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

/** Returns the last offset in the window where a cluster certainly ends. The window may end inside a cluster. */
function lastGraphemeEnd(window: string): number {
  let last = window.length
  let previous = 0
  for (const { index } of splitGraphemes(window)) {
    if (index > 0) previous = index
  }
  if (previous > 0) last = previous
  return last
}

/** Yields the grapheme clusters of a text lazily, in linear time. Overlong clusters are split into code points. */
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
