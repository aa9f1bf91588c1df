import { KisError } from '../../../common/errors.ts'
import type { Model } from '../../domain/catalog.ts'
import { checkTokensOfEach, type EmbeddingRequest } from '../../domain/embeddings/embedding-request.ts'
import type { Usage } from '../../domain/tokens/usage.ts'
import { countedUsage, isCount, providerUsage, toQuantities } from '../../domain/tokens/usage.ts'
import { type EmbeddingCall, NeverSent } from '../../ports/engines.ts'
import { type CallContext, findOrganizationId, getEnginePart, type Ports, type RequestContext, type With } from '../deps.ts'

/** The vectors of a call's inputs, in their order, and the usage to charge. */
export interface Embedded {
  readonly vectors: readonly Float32Array[]
  /** Null: the engine returns none, or they were not requested. */
  readonly tokenStates: readonly Int8Array[] | null
  readonly usage: Usage
}

/** The counted inputs of a call, before they are embedded. */
export interface Counted {
  /** The tokens of each input, special tokens included. */
  readonly counts: readonly number[]
  /** The input for `embed`: tokens instead of texts if the engine tokenizes, so that each text is tokenized once. */
  readonly input: EmbeddingRequest['input']
}

/**
 * Counts the tokens that the engine will see for each input, special tokens included. If the engine counts with the
 * model's own tokenizer, an input above the model's limit is refused. Otherwise the count is an estimate: only an input
 * above the limit by more than the estimate's error is refused, and the engine checks the others.
 * @throws {KisError} `context_length_exceeded`: an input is too long.
 */
export async function countEmbeddingTokens(
  deps: Ports,
  model: Model,
  input: EmbeddingRequest['input'],
  toParam: (index: number) => string,
  requestContext: Pick<RequestContext, 'caller' | 'signal'>,
): Promise<Counted> {
  const engine = getEnginePart(deps, model, 'embedding')
  const callArguments = [requestContext.signal, findOrganizationId(requestContext)] as const
  const tokens = isTexts(input) ? await engine.tokenize?.(input, ...callArguments) : input
  const own = tokens ? tokens.map(({ length }) => length) : await engine.countTokens(input as readonly string[], ...callArguments)
  const counts = own.map((count) => count + model.markTokens)
  checkTokensOfEach(counts, areExact(model, input), model, toParam)
  return { counts, input: tokens ?? input }
}

/**
 * Embeds the input in order, in batches of the engine's size. A report of zero tokens does not count, nor do reports
 * whose sum is more than an `Int`. `onSent` is called before each batch with the number of inputs sent up to its end.
 * @throws {NeverSent} the signal has aborted before anything was sent.
 * @throws {KisError} `engine_error`: the engine returned a wrong number of vectors, or vectors of wrong dimensions.
 */
export async function embedInBatches(
  deps: With<'zeroUsage'>,
  { requestId, caller }: Pick<CallContext, 'requestId' | 'caller'>,
  model: Model,
  { input, counts }: Counted,
  options: Pick<EmbeddingCall, 'dimensions' | 'purpose' | 'withTokenEmbeddings'>,
  signal: AbortSignal,
  onSent: (inputs: number) => void = () => undefined,
): Promise<Embedded> {
  const embedding = getEnginePart(deps, model, 'embedding')
  const call = { engineModel: model.engineModel, requestId, organizationId: caller.organizationId, ...options }
  const vectors: Float32Array[] = []
  const tokenEmbeddings: Int8Array[] = []
  let tokens = 0
  let isReported = true
  for (let start = 0; start < input.length; start += embedding.maxBatch) {
    signal.throwIfAborted()
    const part = input.slice(start, start + embedding.maxBatch) as EmbeddingRequest['input']
    onSent(start + part.length)
    const batch = await embedding.embed(call, part, signal).catch((error) => {
      if (error instanceof NeverSent) onSent(start)
      // The engine was called for the earlier batches.
      throw error instanceof NeverSent && start > 0 ? error.cause : error
    })
    checkVectors(batch.vectors, part.length, options.dimensions ?? model.dimensions, model)
    vectors.push(...batch.vectors)
    tokenEmbeddings.push(...(batch.tokenEmbeddings ?? []))
    const isZero = batch.tokens === 0
    if (isZero && batch.source === 'provider') deps.zeroUsage.note(model)
    tokens += isZero ? sumTokens(counts.slice(start, start + part.length)) : batch.tokens
    isReported &&= batch.source === 'provider' && !isZero
  }
  const used = isCount(tokens) ? tokens : sumTokens(counts)
  const usage = isReported && used === tokens ? providerUsage(toQuantities(used, 0)) : countedUsage(used, 0)
  return { vectors, tokenStates: tokenEmbeddings.length > 0 ? tokenEmbeddings : null, usage }
}

/** Checks the vectors against the catalog, because an index of other dimensions would refuse them one by one. */
function checkVectors(vectors: readonly Float32Array[], count: number, dimensions: number, { id }: Model): void {
  if (vectors.length !== count)
    throw new KisError('engine_error', `The engine of \`${id}\` returned ${vectors.length} vectors for ${count} inputs.`)
  const wrong = vectors.find(({ length }) => length !== dimensions)
  if (wrong)
    throw new KisError('engine_error', `The engine of \`${id}\` returned a vector of ${wrong.length} dimensions instead of ${dimensions}.`)
}

/** Reports whether the token counts of an input are exact, not estimates. */
export function areExact({ countsExactly }: Model, input: EmbeddingRequest['input']): boolean {
  return countsExactly || !isTexts(input)
}

export function sumTokens(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

function isTexts(input: EmbeddingRequest['input']): input is readonly string[] {
  return typeof input[0] === 'string'
}
