import { toLatinDigits } from '../../../parts/typed-number.ts'

/** Matches `[1]`, `[1, 2]` and `[٢]`. */
const CITATION = /\[([\d٠-٩]{1,3}(?:\s*[,،]\s*[\d٠-٩]{1,3})*)\]/g

/** Splits an answer at its citations of one of `count` chunks: texts, and the numbers of chunks. */
export function cutCitations(text: string, count: number): readonly (string | number)[] {
  const pieces: (string | number)[] = []
  let at = 0
  for (const match of text.matchAll(CITATION)) {
    const numbers = match[1]!.split(/[,،]/).map((digits) => Number(toLatinDigits(digits)))
    if (!numbers.every((number) => number >= 1 && number <= count)) continue
    if (match.index > at) pieces.push(text.slice(at, match.index))
    pieces.push(...numbers)
    at = match.index + match[0].length
  }
  if (at < text.length) pieces.push(text.slice(at))
  return pieces
}
