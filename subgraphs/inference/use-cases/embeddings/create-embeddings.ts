import type { RateLimits } from '../../../../schema/errors.ts'
import { refuse } from '../../../common/check.ts'
import {
  checkEmbeddingAgainstModel,
  checkEmbeddingRequest,
  checkTokensOfAll,
  type EmbeddingRequest,
  isOfOtherTokens,
  withQueryPrefix,
} from '../../domain/embeddings/embedding-request.ts'
import { shortened } from '../../domain/embeddings/vectors.ts'
import { embeddingCeiling } from '../../domain/money/ceiling.ts'
import { countedUsage, toQuantities } from '../../domain/tokens/usage.ts'
import { admit } from '../calls/admit.ts'
import { type LimitedCall, limited } from '../calls/limited-call.ts'
import type { CallDeps, RequestContext } from '../deps.ts'
import { billedCall } from '../money/billed-call.ts'
import { areExact, countEmbeddingTokens, embedInBatches, sumTokens } from './embed.ts'

/** The result of an embeddings call, charged. */
export interface Embeddings {
  /** In the order of the inputs, each of L2 norm 1. */
  readonly vectors: readonly Float32Array[]
  readonly modelId: string
  readonly promptTokens: number
  readonly cost: bigint
  readonly rateLimits: RateLimits | null
}

interface EmbeddingsInput {
  readonly model: unknown
  readonly input: unknown
  readonly dimensions?: unknown
}

/**
 * Embeds texts, or token arrays. If the model accepts no tokens, their texts are embedded.
 * @throws {KisError} the error of a check or of the engine; nothing is charged, unless it is a `StoppedByLimit`.
 */
export function createEmbeddings(deps: CallDeps, requestContext: RequestContext, input: EmbeddingsInput): Promise<Embeddings> {
  return limited(deps, requestContext, 'embeddings', (call, currentContext) => embed(deps, currentContext, call, input))
}

async function embed(
  deps: CallDeps,
  requestContext: RequestContext,
  call: LimitedCall,
  input: EmbeddingsInput,
): Promise<Omit<Embeddings, 'rateLimits'>> {
  const { principal, request, model } = admit(deps.catalog, requestContext.caller, {
    scope: 'inference',
    kind: 'embedding',
    modelParam: 'model',
    check: () => checkEmbeddingRequest(input),
  })
  checkEmbeddingAgainstModel(request, model)
  const isList = Array.isArray(input.input) && typeof input.input[0] !== 'number'
  const toParam = (index: number) => (isList ? `input[${index}]` : 'input')
  const items = isOfOtherTokens(request.input, model) ? await decoded(deps, request.input, toParam) : request.input
  const inputs = items.map((item) => (typeof item === 'string' ? withQueryPrefix(item, model) : item)) as EmbeddingRequest['input']
  const counted = await countEmbeddingTokens(deps, model, inputs, toParam, requestContext)
  const { counts } = counted
  checkTokensOfAll(sumTokens(counts), areExact(model, inputs))
  const context = await call.admit(principal, sumTokens(counts))

  // The engine shortens the vectors if the model can; otherwise they are cut here.
  const isEngineShortening = model.supports.has('dimensions') && request.dimensions !== model.dimensions
  let sent = 0
  const length = request.dimensions ?? model.dimensions
  return billedCall(
    deps,
    context,
    {
      operation: 'embedding',
      model,
      ceiling: embeddingCeiling(model, sumTokens(counts)),
      atLeast: toQuantities(sumTokens(counts), 0),
    },
    () => countedUsage(sumTokens(counts.slice(0, sent)), 0),
    async (signal) => {
      const options = { dimensions: isEngineShortening ? request.dimensions : null, purpose: 'query' } as const
      const done = await embedInBatches(deps, context, model, counted, options, signal, (count) => {
        sent = count
      })
      const vectors = done.vectors.map((vector) => (vector.length > length ? shortened(vector, length) : vector))
      return { value: { vectors, modelId: model.id, promptTokens: done.usage.quantities.inputTokens }, usage: done.usage }
    },
  )
}

/** @throws {KisError} `invalid_value`: a number is not a token; `context_length_exceeded`: there are too many */
async function decoded(
  { tokens: decoder }: CallDeps,
  inputs: readonly (readonly number[])[],
  toParam: (index: number) => string,
): Promise<readonly string[]> {
  checkTokensOfAll(sumTokens(inputs.map(({ length }) => length)), true)
  const texts: string[] = []
  for (const [index, tokens] of inputs.entries()) {
    const read = await decoder.decode(tokens)
    if ('unknownAt' in read) {
      const param = `${toParam(index)}[${read.unknownAt}]`
      refuse('invalid_value', param, `'${param}' is not a token of \`cl100k_base\`. Send texts, or tokens of this encoding.`)
    }
    texts.push(read.text)
  }
  return texts
}
