export const MEASURES = ['recallAt1', 'recallAt3', 'recallAt10', 'ndcgAt10', 'mrrAt10'] as const
export type Measure = (typeof MEASURES)[number]

type Figures = { readonly ranking: string; readonly language: string | null; readonly questionCount: number } & Readonly<
  Record<Measure, number>
>

interface Settings<Score extends Figures> {
  readonly label: string
  readonly scores: readonly Score[]
}

export interface ScoreRow<Score extends Figures> {
  readonly key: string
  readonly label: string
  /** Whether this is the first row of its settings, the only one that names them in a table. */
  readonly isFirst: boolean
  readonly score: Score
  /** The score in the other evaluation. Null: it has no such row, or there is none. */
  readonly before: Score | null
}

/**
 * Returns the scores of an evaluation row by row, each with that of the other evaluation for the same settings, ranking
 * and language.
 */
export function toRows<Score extends Figures>(
  settings: readonly Settings<Score>[],
  others: readonly Settings<Score>[] | null,
): readonly ScoreRow<Score>[] {
  return settings.flatMap(({ label, scores }, index) => {
    const other = others?.find((each) => each.label === label)
    return scores
      .filter(({ questionCount }) => questionCount > 0)
      .map((score, row) => ({
        key: `${index} ${score.ranking} ${score.language}`,
        label,
        isFirst: row === 0,
        score,
        before: other?.scores.find(({ ranking, language }) => ranking === score.ranking && language === score.language) ?? null,
      }))
  })
}

/** Returns by how many percentage points a measure rose; null: there is nothing to compare with. */
export function change<Score extends Figures>(
  { score, before }: Pick<ScoreRow<Score>, 'score' | 'before'>,
  measure: Measure,
): number | null {
  return before ? Math.round((score[measure] - before[measure]) * 1000) / 10 : null
}
