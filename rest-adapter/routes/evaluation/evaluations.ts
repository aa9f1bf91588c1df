import { gatewayOperation, type Selected } from '../../../schema/operations.ts'
import { NotFound } from '../../../subgraphs/common/errors.ts'
import * as operations from '../../contract/evaluations.ts'
import { csvLine } from '../../http/csv.ts'
import { PAGE_INFO } from '../../http/lists.ts'
import { deleteRoute, listRoute } from '../../http/resource-routes.ts'
import { created, type JsonObject, ok, type Route, type RouteResponse, route } from '../../http/route.ts'
import { lowerCase, unixSeconds, unixSecondsOrNull } from '../../http/values.ts'
import { toExpected } from './gold-questions.ts'

const EVALUATION = `id collectionId status progress { done total } error { code message } cost startedAt endedAt
  changes { added replaced deleted updated settings } comparison { baselineId questionCount falls { settings language measure before after } }
  settings { label mode filter rerankModel lexicalWeight scores { ranking language questionCount recallAt1 recallAt3 recallAt10 ndcgAt10 mrrAt10 } }`
const QUESTION = 'id: goldQuestionId query expected { fileName page phrase } ranks { combined words meaning }'

type EvaluationData = Selected<'Evaluation', typeof EVALUATION>
type QuestionData = Selected<'EvaluatedQuestion', typeof QUESTION>

const START = gatewayOperation(
  `mutation StartEvaluation($input: StartEvaluationInput!) { startEvaluation(input: $input) { evaluation { ${EVALUATION} } } }`,
)
const LIST = gatewayOperation(`query Evaluations($id: ID!, $first: Int!, $after: String, $order: SortOrder) {
  collection(id: $id) { evaluations(first: $first, after: $after, order: $order) { edges { node { ${EVALUATION} } } ${PAGE_INFO} } } }`)
const GET = gatewayOperation(`query Evaluation($id: ID!) { evaluation(id: $id) { ${EVALUATION} questions { ${QUESTION} } } }`)
const DELETE = gatewayOperation('mutation DeleteEvaluation($id: ID!) { deleteEvaluation(id: $id) { id } }')

const NAMES = { collectionId: 'id' }

type SettingsData = Omit<EvaluationData['settings'][number], 'scores'>

export function toSettings({ label, mode, filter, rerankModel, lexicalWeight }: SettingsData): operations.EvaluatedSettings {
  return {
    label,
    mode: lowerCase(mode),
    filter: filter as operations.EvaluatedSettings['filter'],
    rerank_model: rerankModel,
    lexical_weight: lexicalWeight,
  }
}

function toComparison({ baselineId, questionCount, falls }: NonNullable<EvaluationData['comparison']>): operations.EvaluationComparison {
  return { baseline_evaluation_id: baselineId, question_count: questionCount, falls: falls as operations.EvaluationComparison['falls'] }
}

function toEvaluation({
  id,
  collectionId,
  status,
  progress,
  error,
  cost,
  startedAt,
  endedAt,
  ...more
}: EvaluationData): operations.Evaluation {
  const { settings, changes, comparison } = more
  return {
    id,
    object: 'evaluation',
    created_at: unixSeconds(startedAt),
    ended_at: unixSecondsOrNull(endedAt),
    collection_id: collectionId,
    status: lowerCase(status),
    progress,
    error,
    cost_usd: cost,
    changes,
    comparison: comparison && toComparison(comparison),
    settings: settings.map(({ scores, ...searched }) => ({
      ...toSettings(searched),
      scores: scores.map((score) => ({
        ranking: lowerCase(score.ranking),
        language: score.language,
        question_count: score.questionCount,
        recall_at_1: score.recallAt1,
        recall_at_3: score.recallAt3,
        recall_at_10: score.recallAt10,
        ndcg_at_10: score.ndcgAt10,
        mrr_at_10: score.mrrAt10,
      })),
    })),
  }
}

function toQuestion({ id, query, expected, ranks }: QuestionData) {
  return { id, query, expected: expected.map(toExpected), ranks }
}

export function toSettingsInput({ label, mode, filter, rerank_model, lexical_weight }: JsonObject): JsonObject {
  return { label, mode: (mode as string | undefined)?.toUpperCase(), filter, rerankModel: rerank_model, lexicalWeight: lexical_weight }
}

const COLUMNS = ['question_id', 'query', 'file_name', 'page', 'phrase', 'settings', 'rank', 'rank_by_words', 'rank_by_meaning'] as const

/** Writes a line for each expected chunk of each question, for each of the settings. */
function toTable({ id, settings, questions }: EvaluationData & { readonly questions: readonly QuestionData[] }): RouteResponse {
  const lines = questions.flatMap((question) =>
    question.expected.flatMap(({ fileName, page, phrase }, e) =>
      question.ranks.map(({ combined, words, meaning }, s) =>
        csvLine([
          question.id,
          question.query,
          fileName,
          page,
          phrase,
          settings[s]!.label,
          combined[e] ?? null,
          words[e] ?? null,
          meaning[e] ?? null,
        ]),
      ),
    ),
  )
  const headers = {
    'content-type': 'text/csv; charset=utf-8; header=present',
    'content-disposition': `attachment; filename="${id}.csv"`,
  }
  return { status: 200, headers, body: csvLine(COLUMNS) + lines.join('') }
}

export const evaluationRoutes: readonly Route[] = [
  route({
    operation: operations.startEvaluation,
    async handle({ execute, params, body }) {
      const settings = (body.settings as readonly JsonObject[] | undefined)?.map(toSettingsInput)
      const { startEvaluation } = await execute(START, { input: { collectionId: params.id, settings } }, NAMES)
      return created(toEvaluation(startEvaluation.evaluation))
    },
  }),
  listRoute(operations.listEvaluations, LIST, ({ collection }) => collection?.evaluations, toEvaluation, { owner: 'collection' }),
  route({
    operation: operations.getEvaluation,
    async handle({ execute, params, query }) {
      const { evaluation } = await execute(GET, { id: params.id })
      if (!evaluation) throw new NotFound('evaluation', params.id!)
      if (query.format === 'csv') return toTable(evaluation)
      return ok({ ...toEvaluation(evaluation), questions: evaluation.questions.map(toQuestion) })
    },
  }),
  deleteRoute(operations.deleteEvaluation, DELETE, 'evaluation', ({ deleteEvaluation }) => deleteEvaluation.id),
]
