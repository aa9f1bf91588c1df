import { gatewayOperation, type Selected } from '../../../schema/operations.ts'
import * as operations from '../../contract/evaluations.ts'
import { ok, type Route, route } from '../../http/route.ts'
import { toExpected } from './gold-questions.ts'

const SUGGESTION = 'query language expected { fileName page phrase } chunk { id text document { id } }'

type SuggestionData = Selected<'GoldQuestionSuggestion', typeof SUGGESTION>

const SUGGEST = gatewayOperation(`mutation SuggestGoldQuestions($input: SuggestGoldQuestionsInput!) {
  suggestGoldQuestions(input: $input) { suggestions { ${SUGGESTION} } dropped error cost } }`)

const NAMES = { collectionId: 'id', documentIds: 'document_ids', otherLanguage: 'other_language' }

function toSuggestion({ query, language, expected, chunk }: SuggestionData) {
  const { id, text, document } = chunk
  return { query, language, expected: expected.map(toExpected), document_id: document.id, chunk_id: id, text }
}

export const suggestionRoutes: readonly Route[] = [
  route({
    operation: operations.suggestGoldQuestions,
    async handle({ execute, params, body }) {
      const { model, count, document_ids: documentIds, other_language: otherLanguage } = body
      const input = { collectionId: params.id, model, count, documentIds, otherLanguage }
      const { suggestions, dropped, error, cost } = (await execute(SUGGEST, { input }, NAMES)).suggestGoldQuestions
      return ok({ object: 'gold_question.suggestions', data: suggestions.map(toSuggestion), dropped, error, cost_usd: cost })
    },
  }),
]
