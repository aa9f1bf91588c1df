import { graphql, type ResultOf } from '../../../data/graphql.ts'

export const GOLD_QUESTIONS = graphql(`
  query GoldQuestions($id: ID!, $first: Int, $after: String) {
    collection(id: $id) {
      id
      goldQuestions(first: $first, after: $after) {
        totalCount
        pageInfo { hasNextPage endCursor }
        edges { node { id query expected { fileName page phrase } } }
      }
    }
  }
`)

export type GoldQuestion = NonNullable<ResultOf<typeof GOLD_QUESTIONS>['collection']>['goldQuestions']['edges'][number]['node']

export const ADD_GOLD_QUESTIONS = graphql(`
  mutation AddGoldQuestions($input: AddGoldQuestionsInput!) {
    addGoldQuestions(input: $input) { questions { id } }
  }
`)

export const DELETE_GOLD_QUESTION = graphql(`
  mutation DeleteGoldQuestion($id: ID!) {
    deleteGoldQuestion(id: $id) { id }
  }
`)

export const SUGGEST_GOLD_QUESTIONS = graphql(`
  mutation SuggestGoldQuestions($input: SuggestGoldQuestionsInput!) {
    suggestGoldQuestions(input: $input) {
      suggestions { query language expected { fileName page phrase } }
      dropped
      error
      cost
    }
  }
`)

export type Suggestion = ResultOf<typeof SUGGEST_GOLD_QUESTIONS>['suggestGoldQuestions']['suggestions'][number]

export const CHAT_MODELS = graphql(`
  query ModelsForQuestions {
    models(kind: CHAT) { id residency }
  }
`)

const SCORES = graphql(`
  fragment EvaluationScores on Evaluation {
    id
    status
    progress { done total }
    error { code message }
    cost
    startedAt
    endedAt
    settings {
      label
      mode
      scores { ranking language questionCount recallAt1 recallAt3 recallAt10 ndcgAt10 mrrAt10 }
    }
  }
`)

export const EVALUATIONS = graphql(
  `
  query Evaluations($id: ID!) {
    collection(id: $id) {
      id
      evaluations(first: 20) { edges { node { ...EvaluationScores } } }
    }
  }
`,
  [SCORES],
)

export type Evaluation = ResultOf<typeof SCORES>
export type Score = Evaluation['settings'][number]['scores'][number]

export const EVALUATED_QUESTIONS = graphql(`
  query EvaluatedQuestions($id: ID!) {
    evaluation(id: $id) {
      id
      questions {
        id
        query
        ranks { combined words meaning }
      }
    }
  }
`)

export const START_EVALUATION = graphql(`
  mutation StartEvaluation($input: StartEvaluationInput!) {
    startEvaluation(input: $input) { evaluation { id status progress { done total } } }
  }
`)

export const DELETE_EVALUATION = graphql(`
  mutation DeleteEvaluation($id: ID!) {
    deleteEvaluation(id: $id) { id }
  }
`)
