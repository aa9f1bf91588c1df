import { ARABIC_PAIRS, LATIN_PAIRS, type LetterPairs } from './letter-pairs.ts'

/** Words shorter than this say nothing. */
const LEAST_WORD = 4
/** Letters that must be judged before a page is. */
const LEAST_LETTERS = 80
/** Letters of a page that are judged: the beginning tells. */
const MAX_LETTERS = 20_000
/** A word whose pairs are rarer than this on average is none: see `letter-pairs.ts`. */
const LEAST_MEAN = 4.6
/** A page is text when this share of its letters is in plausible words. */
const LEAST_PLAUSIBLE = 0.35
/** A page whose glyphs are unknown from this share on cannot be read. */
const MOST_UNKNOWN = 0.3
/** Of a word's letters: Latin letters with accents are Arabic read by the wrong table of codes from this share on. */
const MOST_ACCENTED = 0.6

/** A glyph of which the font does not say what it stands for. */
export function isUnknown(glyph: string): boolean {
  return /[\u0000-\u001f\u007f-\u009f\ue000-\uf8ff\ufffd]/.test(glyph)
}

/**
 * Whether a page's text is what the page shows. Fonts whose tables name the wrong letters give words that no language
 * has. Only words in Latin and Arabic letters are judged; a page with few of them is taken as it is.
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

/** Undefined for words of other scripts, and short ones. */
function isPlausible(word: string): boolean | undefined {
  const plain = plainOf(word)
  if (plain.length < LEAST_WORD) return undefined
  if (accentedShare(word) >= MOST_ACCENTED) return false
  if (/^[a-z]+$/.test(plain)) return meanOf(plain, LATIN_PAIRS) >= LEAST_MEAN
  if (/^[\u0621-\u064a]+$/.test(plain)) return meanOf(plain, ARABIC_PAIRS) >= LEAST_MEAN
  return /^[a-z\u0621-\u064a]+$/.test(plain) ? false : undefined
}

/** Letters that are written for one another; of other languages in Arabic letters, those that they add. */
const FOLDED = [...'ىٱکیگپچژہے']
const FOLDS = new Map([...'ياكيكبجزهي'].map((letter, index) => [FOLDED[index]!, letter]))

function plainOf(word: string): string {
  const bare = word
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[\p{M}ـ]/gu, '')
  return [...bare].map((letter) => FOLDS.get(letter) ?? letter).join('')
}

function accentedShare(word: string): number {
  return [...word].filter((letter) => letter >= '\u00c0' && letter <= '\u00ff').length / word.length
}

/** How common the pairs of a word's letters are on average, its edges with them. */
function meanOf(word: string, { letters, rows }: LetterPairs): number {
  let sum = 0
  let last = 0
  for (const letter of word) {
    const next = letters.indexOf(letter) + 1
    sum += Number(rows[last]![next])
    last = next
  }
  return (sum + Number(rows[last]![0])) / (word.length + 1)
}
