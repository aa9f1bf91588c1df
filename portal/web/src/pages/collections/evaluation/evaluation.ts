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

export const RERANK_MODELS = graphql(`
  query RerankModels {
    models(kind: RERANK) { id }
  }
`)

const CHANGES = graphql(`
  fragment Changes on CollectionChanges { added replaced deleted updated settings }
`)

export type CollectionChanges = ResultOf<typeof CHANGES>

const SCORES = graphql(
  `
  fragment EvaluationScores on Evaluation {
    id
    status
    progress { done total }
    error { code message }
    cost
    startedAt
    endedAt
    changes { ...Changes }
    comparison { baselineId questionCount falls { settings language measure before after } }
    settings {
      label
      mode
      scores { ranking language questionCount recallAt1 recallAt3 recallAt10 ndcgAt10 mrrAt10 }
    }
  }
`,
  [CHANGES],
)

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

const WATCH_FACTS = graphql(
  `
  fragment WatchFacts on EvaluationWatch {
    collectionId
    settings { label mode filter rerankModel lexicalWeight }
    minIntervalSeconds
    maxFall
    changes { ...Changes }
    startedAt
    error { code message }
  }
`,
  [CHANGES],
)

export type Watch = ResultOf<typeof WATCH_FACTS>

export const WATCH = graphql(
  `
  query EvaluationWatch($id: ID!) {
    collection(id: $id) {
      id
      evaluationWatch { ...WatchFacts }
    }
  }
`,
  [WATCH_FACTS],
)

export const SET_WATCH = graphql(
  `
  mutation SetWatch($input: SetEvaluationWatchInput!) {
    setEvaluationWatch(input: $input) { watch { ...WatchFacts } }
  }
`,
  [WATCH_FACTS],
)

export const DELETE_WATCH = graphql(`
  mutation DeleteWatch($collectionId: ID!) {
    deleteEvaluationWatch(collectionId: $collectionId) { id }
  }
`)
