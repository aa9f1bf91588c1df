import { BARE_GAP } from './glyph-items.ts'
import type { TextRun } from './text-runs.ts'

/** A font writes its spaces if a page has at least this many, and this many per gap without a space. */
const LEAST_WRITTEN = 5
const WRITTEN_FOR_BARE = 3

const ARABIC = /^[\u0620-\u06ff\ufb50-\ufdff\ufe70-\ufefc]+$/

/**
 * Decides which gaps without a space separate words. Fonts like Amiri kern letters as far apart as words. Therefore,
 * where a font writes its spaces, a gap without one between two Arabic letters is kerning.
 */
export function resolveBareGaps(runs: readonly TextRun[]): readonly TextRun[] {
  const counts = new Map<string, { written: number; bare: number }>()
  for (const { font, glyphs } of runs) {
    const count = counts.get(font) ?? { written: 0, bare: 0 }
    for (const glyph of glyphs) {
      if (glyph === ' ') count.written += 1
      else if (glyph === BARE_GAP) count.bare += 1
    }
    counts.set(font, count)
  }
  return runs.map((run) => {
    const { glyphs, font } = run
    const { written, bare } = counts.get(font)!
    if (bare === 0 || !glyphs.includes(BARE_GAP)) return run
    const writesSpaces = written >= LEAST_WRITTEN && written >= WRITTEN_FOR_BARE * bare
    const isArabic = (glyph: string | undefined) => glyph !== undefined && ARABIC.test(glyph)
    const isKerning = (at: number) => writesSpaces && isArabic(glyphs[at - 1]) && isArabic(glyphs[at + 1])
    return { ...run, glyphs: glyphs.flatMap((glyph, at) => (glyph !== BARE_GAP ? [glyph] : isKerning(at) ? [] : [' '])) }
  })
}
