import { inferenceOperation, type OperationText } from '../../../schema/operations.ts'
import { type Link, request } from '../../common/link/link.ts'
import { parseUsd } from '../../common/usd.ts'
import type { CallContext, CosineCalibration, Inference } from '../ports/inference.ts'

const EMBEDDING_MODEL = inferenceOperation(
  'query ($id: ID!) { embeddingModel(id: $id) { id dimensions maxTokens overheadTokens cosineSpread calibration { arabicAnchor englishAnchor midpoint slope } } }',
)
const COUNT_TOKENS = inferenceOperation('query ($modelId: ID!, $texts: [String!]!) { countTokens(modelId: $modelId, texts: $texts) }')
const EMBED_QUERY = inferenceOperation(`mutation ($modelId: ID!, $text: String!, $runHoldId: ID, $step: String) {
  embedQuery(modelId: $modelId, text: $text, runHoldId: $runHoldId, step: $step) { vector cost } }`)
const OPEN_EMBEDDING = inferenceOperation(
  'mutation ($modelId: ID!, $tokens: Int!) { openEmbedding(modelId: $modelId, tokens: $tokens) { holdId } }',
)
const EMBED_PASSAGES = inferenceOperation('mutation ($input: EmbedPassagesInput!) { embedPassages(input: $input) { vectors tokens } }')
const CLOSE_EMBEDDING = inferenceOperation(
  'mutation ($holdId: ID!, $tokens: Int!) { closeEmbedding(holdId: $holdId, tokens: $tokens) { charged } }',
)

export function inferenceOver(link: Link): Inference {
  const ask = <Data, Variables>(
    query: OperationText<Data, Variables>,
    variables: Variables & Readonly<Record<string, unknown>>,
    context: CallContext,
  ) => request(link, { query, variables }, context)
  return {
    async embeddingModel(id, context) {
      const { calibration, ...model } = (await ask(EMBEDDING_MODEL, { id }, context)).embeddingModel
      return { ...model, calibration: calibration && decodeCalibration(calibration) }
    },
    countTokens: async (modelId, texts, context) => (await ask(COUNT_TOKENS, { modelId, texts }, context)).countTokens,
    async embedQuery(modelId, text, context) {
      const variables = { modelId, text, runHoldId: context.runHoldId, step: context.step }
      const { embedQuery } = await ask(EMBED_QUERY, variables, context)
      return { vector: decodeVector(embedQuery.vector), cost: parseUsd(embedQuery.cost) }
    },
    openEmbedding: async (modelId, tokens, context) => (await ask(OPEN_EMBEDDING, { modelId, tokens }, context)).openEmbedding.holdId,
    async embedPassages(input, context) {
      const { embedPassages } = await ask(EMBED_PASSAGES, { input }, context)
      return { vectors: embedPassages.vectors.map(decodeVector), tokens: embedPassages.tokens }
    },
    closeEmbedding: async (holdId, tokens, context) => void (await ask(CLOSE_EMBEDDING, { holdId, tokens }, context)),
  }
}

function decodeCalibration({ arabicAnchor, englishAnchor, ...curve }: Pick<CosineCalibration, 'midpoint' | 'slope'> & Anchors) {
  return { ...curve, arabicAnchor: decodeVector(arabicAnchor), englishAnchor: decodeVector(englishAnchor) }
}

interface Anchors {
  readonly arabicAnchor: string
  readonly englishAnchor: string
}

/** Base64 of little-endian 32-bit floats, as the SDL defines. Every platform that Node runs on is little-endian. */
function decodeVector(base64: string): Float32Array {
  const bytes = Buffer.from(base64, 'base64')
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))
}
