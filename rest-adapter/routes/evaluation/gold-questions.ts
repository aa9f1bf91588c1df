import { gatewayOperation, type Selected } from '../../../schema/operations.ts'
import * as operations from '../../contract/evaluations.ts'
import { PAGE_INFO, readId, wholeList } from '../../http/lists.ts'
import { deleteRoute, listRoute } from '../../http/resource-routes.ts'
import { created, type JsonObject, type Route, route } from '../../http/route.ts'
import { unixSeconds } from '../../http/values.ts'

const QUESTION = 'id query expected { fileName page phrase } createdAt'

type QuestionData = Selected<'GoldQuestion', typeof QUESTION>
type ExpectedData = QuestionData['expected'][number]

const ADD = gatewayOperation(
  `mutation AddGoldQuestions($input: AddGoldQuestionsInput!) { addGoldQuestions(input: $input) { questions { ${QUESTION} } } }`,
)
const LIST = gatewayOperation(`query GoldQuestions($id: ID!, $first: Int!, $after: String, $order: SortOrder) {
  collection(id: $id) { goldQuestions(first: $first, after: $after, order: $order) { edges { node { ${QUESTION} } } ${PAGE_INFO} } } }`)
const DELETE = gatewayOperation('mutation DeleteGoldQuestion($id: ID!) { deleteGoldQuestion(id: $id) { id } }')

export function toExpected({ fileName, page, phrase }: ExpectedData): operations.ExpectedChunk {
  return { file_name: fileName, page, phrase }
}

function toQuestion({ id, query, expected, createdAt }: QuestionData): operations.GoldQuestion {
  return { id, object: 'gold_question', created_at: unixSeconds(createdAt), query, expected: expected.map(toExpected) }
}

function toInput({ query, expected }: JsonObject): JsonObject {
  const items = expected as readonly JsonObject[]
  return { query, expected: items.map(({ file_name, page, phrase }) => ({ fileName: file_name, page, phrase })) }
}

export const goldQuestionRoutes: readonly Route[] = [
  route({
    operation: operations.addGoldQuestions,
    async handle({ execute, params, body }) {
      const questions = (body.questions as readonly JsonObject[]).map(toInput)
      const { addGoldQuestions } = await execute(ADD, { input: { collectionId: params.id, questions } })
      return created(wholeList(addGoldQuestions.questions.map(toQuestion), readId))
    },
  }),
  listRoute(operations.listGoldQuestions, LIST, ({ collection }) => collection?.goldQuestions, toQuestion, {
    owner: 'collection',
  }),
  deleteRoute(operations.deleteGoldQuestion, DELETE, 'gold_question', ({ deleteGoldQuestion }) => deleteGoldQuestion.id),
]
