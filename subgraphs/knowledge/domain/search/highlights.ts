import { words } from '../text/text-analysis.ts'

/** A part of a text: UTF-16 offsets from `start` up to but not including `end`. */
export interface TextRange {
  readonly start: number
  readonly end: number
}

/** A word with the marks inside it, which the analysis removes. */
const MARKED_WORD = /[\p{L}\p{N}\p{M}]+/gu
/** More than anybody looks at in one passage. */
const MAX_HIGHLIGHTS = 64

/** The words of the text whose stems the query has, in order, at most 64. `stems` are those of `queryTerms`. */
export function findHighlights(text: string, stems: ReadonlySet<string>): readonly TextRange[] {
  const found: TextRange[] = []
  if (stems.size === 0) return found
  for (const { 0: word, index } of text.matchAll(MARKED_WORD)) {
    if (!words(word).some((stem) => stems.has(stem))) continue
    found.push({ start: index, end: index + word.length })
    if (found.length === MAX_HIGHLIGHTS) break
  }
  return found
}
