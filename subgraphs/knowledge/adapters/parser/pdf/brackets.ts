import type { TextRun } from './text-runs.ts'

export const MIRRORED = new Map([...'()[]{}<>«»‹›⟨⟩≤≥'].map((sign, index, all) => [sign, all[index ^ 1]!]))
export const OPENING: ReadonlySet<string> = new Set('([{<«‹⟨')

/** Rows whose base lines are closer than this, in points, are the same line. */
const SAME_LINE = 2

/**
 * Corrects mirrored brackets. Some producers label a bracket's glyph by its meaning in right-to-left text instead of by
 * its shape, so that all brackets of the font are reversed. The order on the page shows this: ")2016(".
 */
export class Brackets {
  /** The evidence by font: pairs of brackets that look right, minus pairs that look wrong. */
  readonly #evidence = new Map<string, number>()

  /** Returns the runs with corrected brackets. The correction uses the evidence from all calls so far. */
  corrected(runs: readonly TextRun[]): readonly TextRun[] {
    this.#learn(runs)
    return runs.map((run) => {
      if ((this.#evidence.get(run.font) ?? 0) >= 0) return run
      return { ...run, glyphs: run.glyphs.map((glyph) => MIRRORED.get(glyph) ?? glyph) }
    })
  }

  #learn(runs: readonly TextRun[]): void {
    const withBrackets = runs.filter(({ glyphs }) => glyphs.some((glyph) => MIRRORED.has(glyph)))
    withBrackets.sort((a, b) => Math.round(a.y / SAME_LINE) - Math.round(b.y / SAME_LINE) || a.x0 - b.x0)
    let last: { readonly run: TextRun; readonly bracket: string } | undefined
    for (const run of withBrackets) {
      for (const bracket of run.glyphs) {
        const other = MIRRORED.get(bracket)
        if (other === undefined) continue
        if (last && last.bracket === other && last.run.font === run.font && Math.abs(last.run.y - run.y) < SAME_LINE) {
          this.#evidence.set(run.font, (this.#evidence.get(run.font) ?? 0) + (OPENING.has(other) ? 1 : -1))
        }
        last = { run, bracket }
      }
    }
  }
}
