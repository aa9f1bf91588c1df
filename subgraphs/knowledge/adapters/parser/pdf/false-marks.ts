import type { Row } from './rows.ts'
import { isUnknown } from './text-quality.ts'

/** A letter and its vowel marks on one glyph. */
const MARKED_LETTER = /^([\u0621-\u064a])([\u064b-\u0652]+)$/
const LETTER = /^[\u0620-\u064a\u066e-\u06d3\ufb50-\ufdff\ufe70-\ufefc]/
const MARK = /^[\u064b-\u0652]$/
/** Minimum number of words that start with a judged glyph. Fewer may be chance. */
const LEAST_WORDS = 30
/** Maximum words that start with the bare letter, as a share of those that start with the marked one. */
const MOST_BARE = 0.2
/** A text with more vowel marks than this share of its letters is vocalized, and none of its glyphs is judged. */
const MOST_MARKS = 0.1

/**
 * Finds glyphs whose label has vowel marks that they do not draw, and returns the letters that they draw. Word labels a
 * letter's glyph with the first syllable that contains it: after the word "أُعيد", each "أ" at the start of a word is
 * labeled "أُ". Three facts together show such a label: nearly all words that start with the letter have the mark, a
 * separate glyph also draws the mark, and the text is not vocalized.
 */
export function findFalseMarks(rows: Iterable<Row>): ReadonlyMap<string, string> {
  const first = new Map<string, number>()
  const ownMarks = new Map<string, number>()
  let letters = 0
  for (const { segments } of rows) {
    for (const { glyphs } of segments) {
      let right: string | undefined
      for (let at = glyphs.length - 1; at >= 0; at -= 1) {
        const glyph = glyphs[at]!
        if (MARK.test(glyph)) {
          ownMarks.set(glyph, (ownMarks.get(glyph) ?? 0) + 1)
          continue
        }
        if (LETTER.test(glyph)) {
          letters += 1
          if (right === undefined || !LETTER.test(right)) first.set(glyph, (first.get(glyph) ?? 0) + 1)
        }
        right = glyph
      }
    }
  }
  const marks = [...ownMarks.values()].reduce((sum, count) => sum + count, 0)
  const found = new Map<string, string>()
  if (marks > letters * MOST_MARKS) return found
  for (const [glyph, words] of first) {
    const [, letter, own] = MARKED_LETTER.exec(glyph) ?? []
    if (letter === undefined || words < LEAST_WORDS || (first.get(letter) ?? 0) > words * MOST_BARE) continue
    if ([...own!].every((mark) => ownMarks.has(mark))) found.set(glyph, letter)
  }
  return found
}

/** Returns the row with the letters that its glyphs draw. A mark that another glyph draws beside its letter stays. */
export function withoutFalseMarks(row: Row, letters: ReadonlyMap<string, string>): Row {
  const corrected = (glyphs: readonly string[]) =>
    glyphs.map((glyph, at) => {
      // The mark's label is on the letter, so the glyph that draws the mark has none.
      const isDrawn = [glyphs[at - 1], glyphs[at + 1]].some((beside) => beside !== undefined && isUnknown(beside))
      return isDrawn ? glyph : (letters.get(glyph) ?? glyph)
    })
  const segments = row.segments.map((segment) => ({
    ...segment,
    glyphs: corrected(segment.glyphs),
    pieces: segment.pieces.map((piece) => ({ ...piece, glyphs: corrected(piece.glyphs) })),
  }))
  return { ...row, segments }
}
