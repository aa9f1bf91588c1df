import type { Language } from '../text/language.ts'
import { type JudgedQuestion, type Scores, scoreQuestions } from './scores.ts'

/** The compared measures, by the names that clients see. */
const MEASURES = {
  recall_at_1: 'recallAt1',
  recall_at_3: 'recallAt3',
  recall_at_10: 'recallAt10',
  ndcg_at_10: 'ndcgAt10',
  mrr_at_10: 'mrrAt10',
} as const satisfies Readonly<Record<string, keyof Scores>>
type Measure = keyof typeof MEASURES

/** Rounding tolerance: sums of the same ranks in another order differ by less. */
const ROUNDING = 1e-9

/** A measure of the combined ranking that has decreased. */
interface Fall {
  /** The label of the evaluated settings. */
  readonly settings: string
  /** Null: the questions of all languages. */
  readonly language: Language | null
  readonly measure: Measure
  readonly before: number
  readonly after: number
}

/** A comparison of an evaluation with the previous one, by the questions that both contain. */
export interface Comparison {
  /** The ID of the previous evaluation. */
  readonly baselineId: string
  readonly questionCount: number
  /** The measures that decreased by more than the watch allows. */
  readonly falls: readonly Fall[]
}

/**
 * Returns the measures that decreased by more than `maxFall` (0 to 1) between two evaluations of the same questions.
 */
export function findFalls(
  settings: string,
  before: readonly JudgedQuestion[],
  after: readonly JudgedQuestion[],
  maxFall: number,
): readonly Fall[] {
  const former = scoreQuestions(before)
  return scoreQuestions(after).flatMap((scores) => {
    const { ranking, language } = scores
    const known = former.find((each) => each.ranking === ranking && each.language === language)
    if (ranking !== 'combined' || !known) return []
    return (Object.keys(MEASURES) as Measure[]).flatMap((measure) => {
      const fall = { settings, language, measure, before: known[MEASURES[measure]], after: scores[MEASURES[measure]] }
      return fall.before - fall.after > maxFall + ROUNDING ? [fall] : []
    })
  })
}
