import { textAt } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import type { Model } from '../../domain/catalog.ts'
import { withQueryPrefix } from '../../domain/embeddings/embedding-request.ts'
import { cutIntoWindows, MAX_WINDOWS, meanDirection } from '../../domain/embeddings/query-windows.ts'
import { embeddingCeiling } from '../../domain/money/ceiling.ts'
import { countedUsage, toQuantities } from '../../domain/tokens/usage.ts'
import { admit } from '../calls/admit.ts'
import { type LimitedCall, limited } from '../calls/limited-call.ts'
import type { KeyedDeps, RequestContext } from '../deps.ts'
import { onceForStepOf } from '../idempotency/once-for-step.ts'
import { billedCall } from '../money/billed-call.ts'
import { type Counted, countEmbeddingTokens, embedInBatches, sumTokens } from './embed.ts'

/** No search waits longer. A cancelled run waits for its embeddings before it ends, for two minutes at most. */
const MAX_MS = 60_000

interface Query {
  readonly modelId: string
  readonly text: string
  /** The step of a run that makes the search, as `run/path`. */
  readonly step?: string | null
}

interface QueryEmbedding {
  readonly vector: Float32Array
  /** Null: the engine gives none, or the query has several windows. */
  readonly tokenStates: Int8Array | null
  readonly tokens: number
  /** Nano-USD. */
  readonly cost: bigint
}

/**
 * Embeds one search query for another service and charges the searcher's wallet. It counts as one of the organization's
 * concurrent calls, but not as a request of its key. Within a run, the call is charged once however often it is
 * repeated, and also if its caller leaves. A text that is too long for the model is embedded in windows, whose mean stands for it.
 * @throws {KisError} as `admit`.
 * @throws {KisError} `context_length_exceeded`: the text is too long even for `MAX_WINDOWS` windows.
 * @throws {StoppedByLimit} `engine_timeout`: the model took longer than a minute.
 * @throws {KisError} `idempotency_conflict`: the same step of the run is in progress.
 */
export function embedQuery(deps: KeyedDeps, requestContext: RequestContext, query: Query): Promise<QueryEmbedding> {
  const once = (effectiveContext: RequestContext) =>
    limited(deps, effectiveContext, 'chat', (call, admitted) => embed(deps, admitted, call, query))
  return query.step == null ? once(requestContext) : onceForStepOf(deps, requestContext, query.step, once)
}

async function embed(
  deps: KeyedDeps,
  requestContext: RequestContext,
  call: LimitedCall,
  { modelId, text }: Query,
): Promise<QueryEmbedding> {
  const { principal, model } = admit(deps.catalog, requestContext.caller, {
    scope: 'knowledge:read',
    kind: 'embedding',
    modelParam: 'modelId',
    check: () => ({ model: modelId, text: textAt(text, 'text') }),
  })
  const counted = await toWindows(deps, requestContext, model, text)
  const tokens = sumTokens(counted.counts)
  const context = await call.admit(principal, null)
  return billedCall(
    deps,
    context,
    {
      operation: 'embedding',
      model,
      ceiling: embeddingCeiling(model, tokens),
      atLeast: toQuantities(tokens, 0),
    },
    () => countedUsage(tokens, 0),
    async (signal) => {
      const options = { dimensions: null, purpose: 'query', withTokenEmbeddings: true } as const
      const { vectors, tokenStates, usage } = await embedInBatches(deps, context, model, counted, options, signal)
      const tokens = usage.quantities.inputTokens
      if (vectors.length > 1) return { value: { vector: meanDirection(vectors), tokenStates: null, tokens }, usage }
      return { value: { vector: vectors[0]!, tokenStates: tokenStates?.[0] ?? null, tokens }, usage }
    },
    MAX_MS,
  )
}

/** The text in as few windows as fit the model, each with its prefix. */
async function toWindows(deps: KeyedDeps, requestContext: RequestContext, model: Model, text: string): Promise<Counted> {
  for (let count = 1; ; count = Math.min(count * 2, MAX_WINDOWS)) {
    const windows = count === 1 ? [text] : cutIntoWindows(text, count)
    const texts = windows.map((window) => withQueryPrefix(window, model))
    try {
      return await countEmbeddingTokens(deps, model, texts, () => 'text', requestContext)
    } catch (error) {
      if (!(error instanceof KisError) || error.code !== 'context_length_exceeded' || count === MAX_WINDOWS) throw error
    }
  }
}
