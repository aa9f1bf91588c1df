import type { Ranks } from '../domain/evaluation/ranks.ts'
import { scoreQuestions } from '../domain/evaluation/scores.ts'
import type { EvaluatedQuestion, EvaluatedSettings } from '../domain/records.ts'
import { detectLanguage } from '../domain/text/language.ts'
import { deleteWatch, setWatch } from '../use-cases/evaluation/evaluation-watches.ts'
import { deleteEvaluation, findEvaluation, startEvaluation } from '../use-cases/evaluation/evaluations.ts'
import { addGoldQuestions, deleteGoldQuestion, findGoldQuestion } from '../use-cases/evaluation/gold-questions.ts'
import { suggestGoldQuestions } from '../use-cases/evaluation/suggest-gold-questions.ts'
import type {
  EvaluationResolvers,
  EvaluationWatchResolvers,
  GoldQuestionResolvers,
  MutationResolvers,
  QueryResolvers,
} from './generated.ts'

export const evaluationQueries: QueryResolvers = {
  evaluation: (_parent, { id }, { deps, ...context }) => findEvaluation(deps, context, id),
}

export const evaluationMutations: MutationResolvers = {
  async addGoldQuestions(_parent, { input }, { deps, ...context }) {
    return { questions: await addGoldQuestions(deps, context, input) }
  },
  async suggestGoldQuestions(_parent, { input }, { deps, ...context }) {
    const { suggestions, ...result } = await suggestGoldQuestions(deps, context, input)
    return { ...result, suggestions: suggestions.map(({ document, ...each }) => ({ ...each, chunk: { ...each.chunk, record: document } })) }
  },
  async deleteGoldQuestion(_parent, { id }, { deps, ...context }) {
    await deleteGoldQuestion(deps, context, id)
    return { id }
  },
  async startEvaluation(_parent, { input }, { deps, ...context }) {
    return { evaluation: await startEvaluation(deps, context, input) }
  },
  async deleteEvaluation(_parent, { id }, { deps, ...context }) {
    await deleteEvaluation(deps, context, id)
    return { id }
  },
  async setEvaluationWatch(_parent, { input }, { deps, ...context }) {
    return { watch: await setWatch(deps, context, input) }
  },
  async deleteEvaluationWatch(_parent, { collectionId }, { deps, ...context }) {
    await deleteWatch(deps, context, collectionId)
    return { id: collectionId }
  },
}

export const GoldQuestionFields: GoldQuestionResolvers = {
  id: ({ _id }) => _id,
  __resolveReference: ({ id }, { deps, ...context }) => findGoldQuestion(deps, context, id),
}

export const EvaluationFields: EvaluationResolvers = {
  id: ({ _id }) => _id,
  progress: ({ done, total }) => ({ done, total }),
  cost: ({ cost }) => BigInt(cost),
  changes: ({ changes }) => changes ?? null,
  comparison: ({ comparison }) => (comparison === undefined ? null : JSON.parse(comparison)),
  settings(evaluation) {
    const questions = parseQuestions(evaluation)
    const ranks = parseRanks(evaluation)
    return (JSON.parse(evaluation.settings) as readonly EvaluatedSettings[]).map((settings, i) => ({
      ...settings,
      scores: scoreQuestions(ranks.map((each, q) => ({ language: detectLanguage(questions[q]!.query), ranks: each[i]! }))),
    }))
  },
  questions(evaluation) {
    const questions = parseQuestions(evaluation)
    return parseRanks(evaluation).map((ranks, i) => {
      const { id, ...question } = questions[i]!
      return { id: `${evaluation._id}/${id}`, goldQuestionId: id, ...question, ranks }
    })
  },
  __resolveReference: ({ id }, { deps, ...context }) => findEvaluation(deps, context, id),
}

export const EvaluationWatchFields: EvaluationWatchResolvers = {
  settings: ({ settings }) => JSON.parse(settings),
  maxFall: ({ maxFallThousandths }) => (maxFallThousandths === null ? null : maxFallThousandths / 1_000),
}

function parseQuestions({ questions }: { readonly questions: string }): readonly EvaluatedQuestion[] {
  return JSON.parse(questions)
}

function parseRanks({ ranks }: { readonly ranks: string }): readonly (readonly Ranks[])[] {
  return JSON.parse(ranks)
}
