import { type Comparison, findFalls } from '../../domain/evaluation/compare.ts'
import type { Ranks } from '../../domain/evaluation/ranks.ts'
import type { JudgedQuestion } from '../../domain/evaluation/scores.ts'
import type { EvaluatedQuestion, EvaluatedSettings, EvaluationRecord } from '../../domain/records.ts'
import { detectLanguage } from '../../domain/text/language.ts'
import type { Deps } from '../deps.ts'

/** The record, without the ranks that are still being written. */
type Judged = Pick<EvaluationRecord, '_id' | 'collectionId' | 'settings' | 'questions' | 'ranks'>

/**
 * Compares an evaluation with the newest completed one before it that has the same settings, whatever their labels, by
 * the questions that both have asked. Returns null if there is none, or no question is the same.
 */
export async function compareEvaluation(deps: Pick<Deps, 'store'>, evaluation: Judged, maxFall: number): Promise<Comparison | null> {
  const baseline = await findBaseline(deps, evaluation)
  if (!baseline) return null
  const before = questionsById(baseline)
  const after = questionsById(evaluation)
  const shared = [...after.keys()].filter((id) => before.has(id))
  if (shared.length === 0) return null
  const falls = parseSettings(evaluation).flatMap(({ label }, i) => {
    const judged = (questions: ReadonlyMap<string, RankedQuestion>) => shared.map((id) => toJudged(questions.get(id)!, i))
    return findFalls(label, judged(before), judged(after), maxFall)
  })
  return { baselineId: baseline._id, questionCount: shared.length, falls }
}

/** One after the other, because a record may be long. */
async function findBaseline({ store }: Pick<Deps, 'store'>, evaluation: Judged): Promise<EvaluationRecord | null> {
  const wanted = withoutLabels(evaluation)
  for (let last = evaluation._id; ; ) {
    const filter = { collectionId: evaluation.collectionId, _id: { $lt: last } }
    const [former] = await store.evaluations.find(filter, { sort: { _id: -1 }, limit: 1 })
    if (!former || (former.status === 'completed' && withoutLabels(former) === wanted)) return former ?? null
    last = former._id
  }
}

interface RankedQuestion extends EvaluatedQuestion {
  readonly ranks: readonly Ranks[]
}

function questionsById({ questions, ranks }: Judged): ReadonlyMap<string, RankedQuestion> {
  const evaluated = JSON.parse(questions) as readonly EvaluatedQuestion[]
  const found = JSON.parse(ranks) as readonly (readonly Ranks[])[]
  return new Map(found.map((each, i) => [evaluated[i]!.id, { ...evaluated[i]!, ranks: each }]))
}

function toJudged({ query, ranks }: RankedQuestion, settings: number): JudgedQuestion {
  return { language: detectLanguage(query), ranks: ranks[settings]! }
}

function parseSettings({ settings }: Judged): readonly EvaluatedSettings[] {
  return JSON.parse(settings)
}

function withoutLabels(evaluation: Judged): string {
  return JSON.stringify(parseSettings(evaluation).map(({ label: _label, ...settings }) => settings))
}
