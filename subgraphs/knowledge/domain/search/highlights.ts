import { words } from '../text/text-analysis.ts'

/** A range of a text: UTF-16 offsets from `start` up to but not including `end`. */
export interface TextRange {
  readonly start: number
  readonly end: number
}

/** A word with combining marks inside, which the analysis removes. */
const MARKED_WORD = /[\p{L}\p{N}\p{M}]+/gu
/** Maximum highlights per chunk. */
const MAX_HIGHLIGHTS = 64

/** Finds the words of the text whose stems are in the query, in order, at most 64. `stems` come from `queryTerms`. */
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
