import { KisError } from '../../../common/errors.ts'
import type { Model } from '../../domain/catalog.ts'
import { checkTokensOfEach, type EmbeddingRequest } from '../../domain/embeddings/embedding-request.ts'
import type { Usage } from '../../domain/tokens/usage.ts'
import { countedUsage, providerUsage, toQuantities } from '../../domain/tokens/usage.ts'
import type { EmbeddingCall } from '../../ports/engines.ts'
import { type AskContext, type CallContext, findOrganizationId, getEngine, type Ports } from '../deps.ts'

export interface Embedded {
  readonly vectors: readonly Float32Array[]
  readonly usage: Usage
}

/**
 * Tokens that the engine will see, marks included, for each input. Where the engine counts with the model's own
 * tokenizer, a text over the model's limit is refused; elsewhere the count is an estimate: what is over the limit by
 * more than its error is refused, the rest the engine judges.
 * @throws {KisError} `context_length_exceeded`
 */
export async function countEmbeddingTokens(
  deps: Ports,
  model: Model,
  input: EmbeddingRequest['input'],
  toParam: (index: number) => string,
  ask: Pick<AskContext, 'caller' | 'signal'>,
): Promise<readonly number[]> {
  const counts = isTexts(input)
    ? await getEngine(deps, model).embedding.countTokens(input, ask.signal, findOrganizationId(ask))
    : input.map(({ length }) => length)
  const tokens = counts.map((count) => count + model.markTokens)
  checkTokensOfEach(tokens, areExact(model, input), model, toParam)
  return tokens
}

/**
 * Embeds in batches of the engine's size, in order; `onSent` hears how many inputs have been sent.
 * @throws {KisError}
 */
export async function embedInBatches(
  deps: Ports,
  { requestId, caller }: Pick<CallContext, 'requestId' | 'caller'>,
  model: Model,
  input: EmbeddingRequest['input'],
  asked: Pick<EmbeddingCall, 'dimensions' | 'purpose'>,
  signal: AbortSignal,
  onSent: (inputs: number) => void = () => undefined,
): Promise<Embedded> {
  const { embedding } = getEngine(deps, model)
  const call = { engineModel: model.engineModel, requestId, organizationId: caller.organizationId, ...asked }
  const vectors: Float32Array[] = []
  let tokens = 0
  let isReported = true
  for (let start = 0; start < input.length; start += embedding.maxBatch) {
    signal.throwIfAborted()
    const part = input.slice(start, start + embedding.maxBatch) as EmbeddingRequest['input']
    onSent(start + part.length)
    const batch = await embedding.embed(call, part, signal)
    checkVectors(batch.vectors, part.length, asked.dimensions ?? model.dimensions, model)
    vectors.push(...batch.vectors)
    tokens += batch.tokens
    isReported &&= batch.source === 'provider'
  }
  const usage = isReported ? providerUsage(toQuantities(tokens, 0)) : countedUsage(tokens, 0)
  return { vectors, usage }
}

/** The catalog says how long a model's vectors are; an index of another length would refuse them one by one. */
function checkVectors(vectors: readonly Float32Array[], count: number, dimensions: number, { id }: Model): void {
  if (vectors.length !== count)
    throw new KisError('engine_error', `The engine of \`${id}\` gave ${vectors.length} vectors for ${count} inputs.`)
  const wrong = vectors.find(({ length }) => length !== dimensions)
  if (wrong)
    throw new KisError('engine_error', `The engine of \`${id}\` gave a vector of ${wrong.length} numbers instead of ${dimensions}.`)
}

/** Whether the counts of an input are the model's own. */
export function areExact({ countsExactly }: Model, input: EmbeddingRequest['input']): boolean {
  return countsExactly || !isTexts(input)
}

function isTexts(input: EmbeddingRequest['input']): input is readonly string[] {
  return typeof input[0] === 'string'
}
