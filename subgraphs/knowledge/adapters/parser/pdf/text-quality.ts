import { ARABIC_PAIRS, LATIN_PAIRS, type LetterPairs } from './letter-pairs.ts'

/** Minimum letters of a judged word. */
const LEAST_WORD = 4
/** Minimum judged letters for a decision about a page. */
const LEAST_LETTERS = 80
/** Maximum judged letters per page. The start of a page is enough. */
const MAX_LETTERS = 20_000
/** Minimum mean frequency of the letter pairs in a real word; see `letter-pairs.ts`. */
const LEAST_MEAN = 4.6
/** Minimum share of letters in plausible words on a readable page. */
const LEAST_PLAUSIBLE = 0.35
/** A page is unreadable if more than this share of its glyphs have no known character. */
const MOST_UNKNOWN = 0.3
/** A word with at least this share of accented Latin letters is Arabic that was decoded with the wrong table. */
const MOST_ACCENTED = 0.6

/** Reports whether the font does not map the glyph to a character. */
export function isUnknown(glyph: string): boolean {
  return /[\u0000-\u001f\u007f-\u009f\ue000-\uf8ff\ufffd]/.test(glyph)
}

/**
 * Reports whether the extracted text matches the displayed text. Fonts with wrong tables produce words of no language.
 * Only words in Latin and Arabic letters are judged. A page with few of them passes.
 */
export function isLegible(text: string, unknownShare: number): boolean {
  if (unknownShare > MOST_UNKNOWN) return false
  let judged = 0
  let plausible = 0
  for (const [word] of text.matchAll(/[\p{L}\p{M}]+/gu)) {
    if (judged > MAX_LETTERS) break
    const found = isPlausible(word)
    if (found === undefined) continue
    judged += word.length
    if (found) plausible += word.length
  }
  return judged < LEAST_LETTERS || plausible >= judged * LEAST_PLAUSIBLE
}

/** Returns undefined for short words and for words in other scripts. */
function isPlausible(word: string): boolean | undefined {
  const plain = toPlain(word)
  if (plain.length < LEAST_WORD) return undefined
  if (accentedShare(word) >= MOST_ACCENTED) return false
  if (/^[a-z]+$/.test(plain)) return meanOfPairs(plain, LATIN_PAIRS) >= LEAST_MEAN
  if (/^[\u0621-\u064a]+$/.test(plain)) return meanOfPairs(plain, ARABIC_PAIRS) >= LEAST_MEAN
  return /^[a-z\u0621-\u064a]+$/.test(plain) ? false : undefined
}

/** Letters of other languages that use the Arabic script, and variant letters, mapped to Arabic letters. */
const FOLDED = [...'ىٱکیگپچژہے']
const FOLDS = new Map([...'ياكيكبجزهي'].map((letter, index) => [FOLDED[index]!, letter]))

function toPlain(word: string): string {
  const bare = word
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[\p{M}ـ]/gu, '')
  return [...bare].map((letter) => FOLDS.get(letter) ?? letter).join('')
}

function accentedShare(word: string): number {
  return [...word].filter((letter) => letter >= '\u00c0' && letter <= '\u00ff').length / word.length
}

/** Returns the mean frequency of a word's letter pairs, including the pairs at its edges. */
function meanOfPairs(word: string, { letters, rows }: LetterPairs): number {
  let sum = 0
  let last = 0
  for (const letter of word) {
    const next = letters.indexOf(letter) + 1
    sum += Number(rows[last]![next])
    last = next
  }
  return (sum + Number(rows[last]![0])) / (word.length + 1)
}
