import type { Language } from '../text/language.ts'
import { type JudgedQuestion, type Scores, scoreQuestions } from './scores.ts'

/** The measures that are compared, by the names that clients see. */
const MEASURES = {
  recall_at_1: 'recallAt1',
  recall_at_3: 'recallAt3',
  recall_at_10: 'recallAt10',
  ndcg_at_10: 'ndcgAt10',
  mrr_at_10: 'mrrAt10',
} as const satisfies Readonly<Record<string, keyof Scores>>
type Measure = keyof typeof MEASURES

/** Sums of the same ranks in another order differ by less. */
const ROUNDING = 1e-9

/** A measure of the answer's ranking that is lower than before. */
interface Fall {
  /** The label of the settings. */
  readonly settings: string
  /** Null: the questions of all languages. */
  readonly language: Language | null
  readonly measure: Measure
  readonly before: number
  readonly after: number
}

/** An evaluation beside the one before it, by the questions that both have asked. */
export interface Comparison {
  /** The id of the evaluation before. */
  readonly baselineId: string
  readonly questionCount: number
  /** The measures that fell by more than the watch allows. */
  readonly falls: readonly Fall[]
}

/** Finds what fell by more than `maxFall` (0 to 1) between two judgements of the same questions. */
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
