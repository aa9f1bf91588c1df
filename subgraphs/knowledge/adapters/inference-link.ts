import { inferenceOperation, type OperationText } from '../../../schema/operations.ts'
import { type Link, request } from '../../common/link/link.ts'
import { readTokenEmbeddings, readVector, type WireVector } from '../../common/link/scalars.ts'
import { parseUsd } from '../../common/usd.ts'
import type { CallContext, CosineCalibration, Inference } from '../ports/inference.ts'

const COUNT_REQUEST = inferenceOperation('mutation CountRequest { countRequest { requests { limit } } }')
const EMBEDDING_MODEL = inferenceOperation(
  'query EmbeddingModel($id: ID!) { embeddingModel(id: $id) { id dimensions maxTokens overheadTokens cosineSpread calibration { arabicAnchor englishAnchor midpoint slope } } }',
)
const AGENTS_OF = inferenceOperation(
  'query AgentsOfCollection($collectionId: ID!) { agentsOfCollection(collectionId: $collectionId) { name } }',
)
const COUNT_TOKENS = inferenceOperation(
  'query CountTokens($modelId: ID!, $texts: [String!]!) { countTokens(modelId: $modelId, texts: $texts) }',
)
const EMBED_QUERY = inferenceOperation(`mutation EmbedQuery($modelId: ID!, $text: String!, $runHoldId: ID, $step: String) {
  embedQuery(modelId: $modelId, text: $text, runHoldId: $runHoldId, step: $step) { vector tokenStates cost } }`)
const REWRITE_QUERY = inferenceOperation('mutation RewriteQuery($input: RewriteQueryInput!) { rewriteQuery(input: $input) { query cost } }')
const SUGGEST_QUESTIONS = inferenceOperation(
  'mutation SuggestQuestions($input: SuggestQuestionsInput!) { suggestQuestions(input: $input) { questions { passage question phrase } cost } }',
)
const RERANK_MODEL = inferenceOperation('query RerankModel($id: ID!) { rerankModel(id: $id) { id } }')
const RERANK_PASSAGES =
  inferenceOperation(`mutation RerankPassages($modelId: ID!, $query: String!, $texts: [String!]!, $runHoldId: ID, $step: String) {
  rerankPassages(modelId: $modelId, query: $query, texts: $texts, runHoldId: $runHoldId, step: $step) { results { index score } cost } }`)
const TRANSCRIPTION_MODEL = inferenceOperation('query TranscriptionModel($id: ID!) { transcriptionModel(id: $id) { id } }')
const TRANSCRIBE = inferenceOperation(`mutation TranscribeDocument($input: TranscribeDocumentInput!) {
  transcribeDocument(input: $input) { segments { start end text } } }`)
const QUOTE_EMBEDDING = inferenceOperation(
  'query QuoteEmbedding($modelId: ID!, $tokens: Int!) { quoteEmbedding(modelId: $modelId, tokens: $tokens) { amount isCovered perMillion } }',
)
const OPEN_EMBEDDING = inferenceOperation(
  'mutation OpenEmbedding($modelId: ID!, $tokens: Int!) { openEmbedding(modelId: $modelId, tokens: $tokens) { holdId } }',
)
const EMBED_PASSAGES = inferenceOperation(
  'mutation EmbedPassages($input: EmbedPassagesInput!) { embedPassages(input: $input) { vectors tokenStates tokens } }',
)
const CLOSE_EMBEDDING = inferenceOperation(
  'mutation CloseEmbedding($holdId: ID!, $tokens: Int!) { closeEmbedding(holdId: $holdId, tokens: $tokens) { charged } }',
)

export function inferenceOver(link: Link): Inference {
  const execute = <Data, Variables>(
    query: OperationText<Data, Variables>,
    variables: Variables & Readonly<Record<string, unknown>>,
    context: CallContext,
  ) => request(link, { query, variables }, context)
  return {
    countRequest: async (context) => void (await execute(COUNT_REQUEST, {}, context)),
    async embeddingModel(id, context) {
      const { calibration, ...model } = (await execute(EMBEDDING_MODEL, { id }, context)).embeddingModel
      return { ...model, calibration: calibration && decodeCalibration(calibration) }
    },
    agentsOf: async (collectionId, context) =>
      (await execute(AGENTS_OF, { collectionId }, context)).agentsOfCollection.map(({ name }) => name),
    countTokens: async (modelId, texts, context) => (await execute(COUNT_TOKENS, { modelId, texts }, context)).countTokens,
    async embedQuery(modelId, text, context) {
      const variables = { modelId, text, runHoldId: context.runHoldId, step: context.step }
      const { embedQuery } = await execute(EMBED_QUERY, variables, context)
      const { vector, tokenStates, cost } = embedQuery
      return { vector: readVector(vector), tokenStates: tokenStates ? readTokenEmbeddings(tokenStates) : null, cost: parseUsd(cost) }
    },
    async rewriteQuery({ history, ...input }, context) {
      const messages = history.map(({ role, content }) => ({ role: role.toUpperCase() as Uppercase<typeof role>, content }))
      const { rewriteQuery } = await execute(REWRITE_QUERY, { input: { ...input, history: messages } }, context)
      return { query: rewriteQuery.query, cost: parseUsd(rewriteQuery.cost) }
    },
    async suggestQuestions(input, context) {
      const { suggestQuestions } = await execute(SUGGEST_QUESTIONS, { input }, context)
      return { questions: suggestQuestions.questions, cost: parseUsd(suggestQuestions.cost) }
    },
    rerankModel: async (id, context) => (await execute(RERANK_MODEL, { id }, context)).rerankModel,
    async rerankPassages(modelId, query, texts, context) {
      const variables = { modelId, query, texts, runHoldId: context.runHoldId, step: context.step }
      const { rerankPassages } = await execute(RERANK_PASSAGES, variables, context)
      return { results: rerankPassages.results, cost: parseUsd(rerankPassages.cost) }
    },
    transcriptionModel: async (id, context) => (await execute(TRANSCRIPTION_MODEL, { id }, context)).transcriptionModel,
    async transcribe(modelId, audio, context) {
      const contentBase64 = Buffer.from(audio.buffer, audio.byteOffset, audio.byteLength).toString('base64')
      const input = { modelId, contentBase64, step: context.step }
      return (await execute(TRANSCRIBE, { input }, context)).transcribeDocument.segments
    },
    async quoteEmbedding(modelId, tokens, context) {
      const { amount, isCovered, perMillion } = (await execute(QUOTE_EMBEDDING, { modelId, tokens }, context)).quoteEmbedding
      return { amount: parseUsd(amount), isCovered, perMillion: parseUsd(perMillion) }
    },
    openEmbedding: async (modelId, tokens, context) => (await execute(OPEN_EMBEDDING, { modelId, tokens }, context)).openEmbedding.holdId,
    async embedPassages(input, context) {
      const { embedPassages } = await execute(EMBED_PASSAGES, { input }, context)
      const { vectors, tokenStates, tokens } = embedPassages
      return { vectors: vectors.map(readVector), tokenStates: tokenStates?.map(readTokenEmbeddings) ?? null, tokens }
    },
    closeEmbedding: async (holdId, tokens, context) =>
      parseUsd((await execute(CLOSE_EMBEDDING, { holdId, tokens }, context)).closeEmbedding.charged),
  }
}

function decodeCalibration({ arabicAnchor, englishAnchor, ...curve }: Pick<CosineCalibration, 'midpoint' | 'slope'> & Anchors) {
  return { ...curve, arabicAnchor: readVector(arabicAnchor), englishAnchor: readVector(englishAnchor) }
}

interface Anchors {
  readonly arabicAnchor: string | WireVector
  readonly englishAnchor: string | WireVector
}
