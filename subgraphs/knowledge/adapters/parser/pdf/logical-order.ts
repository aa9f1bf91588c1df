import { MIRRORED, OPENING } from './brackets.ts'

/**
 * Converts a line from visual order, left to right, to reading order. It inverts the Unicode bidirectional algorithm
 * (UAX #9) for one line without embeddings.
 */

const RTL =
  /[\u0590-\u05ff\u0600-\u0605\u0608\u060b\u060d\u061b-\u064a\u066d-\u066f\u0671-\u06d5\u06e5\u06e6\u06ee\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/
const LTR = /\p{L}/u
const ARABIC_DIGIT = /[\u0660-\u0669\u06f0-\u06f9]/
const DIGIT = /\p{Nd}/u
/**
 * Signs that stay with European digits beside them, separators between digits of any kind, and separators between
 * European digits.
 */
const NUMBER_SIGN = /^[%$€£¥#°+‰]$/
const SEPARATOR = /^[.,:/٫٬\u00a0]$/
const EUROPEAN_SEPARATOR = /^[-+–]$/

type Kind = 'rtl' | 'ltr' | 'digit' | 'arabic_digit' | 'neutral'

function classifyGlyph(glyph: string): Kind {
  if (ARABIC_DIGIT.test(glyph)) return 'arabic_digit'
  if (RTL.test(glyph)) return 'rtl'
  if (DIGIT.test(glyph)) return 'digit'
  return LTR.test(glyph) ? 'ltr' : 'neutral'
}

/** Counts the words of each direction, by their first letters. */
export function directionCounts(glyphs: Iterable<string>): { readonly rtl: number; readonly ltr: number } {
  let rtl = 0
  let ltr = 0
  let isOpen = false
  for (const glyph of glyphs) {
    const kind = classifyGlyph(glyph)
    if (glyph === ' ') isOpen = false
    else if (!isOpen && (kind === 'rtl' || kind === 'ltr')) {
      isOpen = true
      if (kind === 'rtl') rtl += 1
      else ltr += 1
    }
  }
  return { rtl, ltr }
}

/**
 * Returns the text of a line in reading order.
 * @param glyphs the glyphs from left to right, with spaces between words
 * @param isRtl the direction of the line
 */
export function logicalText(glyphs: readonly string[], isRtl: boolean): string {
  const clusters = splitIntoClusters(glyphs)
  const kinds = clusters.map(classifyGlyph)
  if (!isRtl && !kinds.includes('rtl') && !kinds.includes('arabic_digit')) return tidied(clusters.join(''))
  const runs = isRtl ? leftToRightRuns(clusters, kinds) : rightToLeftRuns(clusters, kinds)
  const parts: string[] = []
  for (const { start, end, isRtl: isReversed } of runs) {
    if (isReversed) for (let at = end - 1; at >= start; at -= 1) parts.push(MIRRORED.get(clusters[at]!) ?? clusters[at]!)
    else for (let at = start; at < end; at += 1) parts.push(clusters[at]!)
  }
  return tidied(parts.join(''))
}

interface Run {
  readonly start: number
  readonly end: number
  readonly isRtl: boolean
}

/** Returns the runs of a right-to-left line in reading order, the rightmost first. */
function leftToRightRuns(clusters: readonly string[], kinds: readonly Kind[]): readonly Run[] {
  const runs: Run[] = []
  let at = 0
  while (at < kinds.length) {
    const start = at
    const end = endOfLeftToRight(clusters, kinds, at)
    if (end > at) at = end
    else while (at < kinds.length && endOfLeftToRight(clusters, kinds, at) === at) at += 1
    runs.push({ start, end: at, isRtl: end === start })
  }
  return runs.reverse()
}

/**
 * Returns the end of the run of Latin words, or of the number, that begins at `at`. Returns `at` if none begins there.
 */
function endOfLeftToRight(clusters: readonly string[], kinds: readonly Kind[], at: number): number {
  const from = kinds[at] === 'neutral' && NUMBER_SIGN.test(clusters[at]!) ? at + 1 : at
  const first = kinds[from]
  if (first === 'arabic_digit') return from > at ? at : endOfNumber(clusters, kinds, at, 'arabic_digit')
  if (first !== 'digit' && (first !== 'ltr' || from > at)) return at
  let hasLetters = false
  let end = from
  let open = 0
  for (let next = from; next < kinds.length; next += 1) {
    const kind = kinds[next]!
    if (kind === 'rtl' || kind === 'arabic_digit') break
    if (kind === 'neutral') {
      if (OPENING.has(clusters[next]!)) open += 1
      else if (open > 0 && MIRRORED.has(clusters[next]!)) {
        open -= 1
        // A closing bracket belongs to the run if the opening one does.
        if (hasLetters && open === 0) end = next + 1
      }
    } else {
      hasLetters ||= kind === 'ltr'
      end = next + 1
    }
  }
  return hasLetters ? end : endOfNumber(clusters, kinds, at, 'digit')
}

function endOfNumber(clusters: readonly string[], kinds: readonly Kind[], at: number, digit: Kind): number {
  let end = at
  while (end < kinds.length) {
    const glyph = clusters[end]!
    const isBetween = end > at && kinds[end + 1] === digit && kinds[end - 1] === digit
    const isSign = digit === 'digit' && NUMBER_SIGN.test(glyph)
    if (
      kinds[end] === digit ||
      isSign ||
      (glyph === ' ' && isThousands(kinds, end, at, digit)) ||
      (isBetween && (SEPARATOR.test(glyph) || (digit === 'digit' && EUROPEAN_SEPARATOR.test(glyph))))
    )
      end += 1
    else break
  }
  return end
}

/** Reports whether a space separates thousands, as in 3 001, rather than two numbers. */
function isThousands(kinds: readonly Kind[], at: number, start: number, digit: Kind): boolean {
  const areDigits = (from: number, to: number) => kinds.slice(from, to).every((kind) => kind === digit)
  const hasThree = at + 4 <= kinds.length && areDigits(at + 1, at + 4) && kinds[at + 4] !== digit
  return hasThree && kinds[at - 1] === digit && !(at - start >= 4 && areDigits(at - 4, at))
}

/**
 * Returns the runs of a left-to-right line. Right-to-left words, and what stands between them, are reversed; numbers
 * among them are not.
 */
function rightToLeftRuns(clusters: readonly string[], kinds: readonly Kind[]): readonly Run[] {
  const runs: Run[] = []
  let at = 0
  while (at < kinds.length) {
    const start = at
    if (kinds[at] !== 'rtl') {
      while (at < kinds.length && kinds[at] !== 'rtl') at += 1
      runs.push({ start, end: at, isRtl: false })
      continue
    }
    let end = at
    for (; at < kinds.length && kinds[at] !== 'ltr'; at += 1) if (kinds[at] === 'rtl') end = at + 1
    at = end
    const inner = leftToRightRuns(clusters.slice(start, end), kinds.slice(start, end))
    for (const run of inner) runs.push({ ...run, start: run.start + start, end: run.end + start })
  }
  return runs
}

/** Splits ligatures of Latin letters. Ligatures of right-to-left letters stay whole. */
function splitIntoClusters(glyphs: readonly string[]): readonly string[] {
  return glyphs.flatMap((glyph) => (glyph.length > 1 && !RTL.test(glyph) ? [...glyph] : [glyph]))
}

/** Vowel marks after a space, and vowel marks without a letter. */
const SPACED_VOWEL = /[ \u00a0](?=[\u064b-\u0655\u0670])/g
const LONE_VOWEL = /(?<![\u0620-\u064a\u066e-\u06d3\ufb50-\ufdff\ufe70-\ufefc\u064b-\u0655\u0670])[\u064b-\u0655\u0670]/g
/** Faulty glyph tables give these characters for parts of letters. */
const STRAY =
  /(?<=[\u0620-\u064a\u066e-\u06d3\ufb50-\ufdff\ufe70-\ufefc\u064b-\u0655\u0670])[«»\u00b2\u00b3\u00b9\u00c0-\u00ff\ue000-\uf8ff](?=[\u0620-\u064a\u066e-\u06d3\ufb50-\ufdff\ufe70-\ufefc])/g
/** An Arabic word does not begin inside a Latin word or a number. The exception is the abbreviation for Hijri years. */
const AFTER_LATIN = /(?<=[\p{Script=Latin}\p{Nd}])(?!هـ)(?=[\u0620-\u064a\u066e-\u06d3\ufb50-\ufdff\ufe70-\ufefc]{2})/gu
const BEFORE_NUMBER = /(?<=[\u0620-\u064a\u066e-\u06d3\ufb50-\ufdff\ufe70-\ufefc]{3})(?=\p{Nd})/gu

/** Bullets of symbol fonts, and glyphs without a known character. */
const SYMBOL_BULLET = /[\uf0a7\uf0a8\uf0b7\uf0d8\uf0fc\uf076]/g
const UNKNOWN = /[\ue000-\uf8ff]/g

function tidied(text: string): string {
  return text
    .replace(SYMBOL_BULLET, '•')
    .replace(UNKNOWN, '')
    .replace(SPACED_VOWEL, '')
    .replace(LONE_VOWEL, '')
    .replace(STRAY, '')
    .replace(AFTER_LATIN, ' ')
    .replace(BEFORE_NUMBER, ' ')
}
