import { textAt } from '../../../common/check.ts'
import { requirePrincipal } from '../../../common/identity/principal.ts'
import { withQueryPrefix } from '../../domain/embeddings/embedding-request.ts'
import { embeddingCeiling } from '../../domain/money/ceiling.ts'
import { countedUsage, toQuantities } from '../../domain/tokens/usage.ts'
import { admit } from '../calls/admit.ts'
import { type LimitedCall, limited } from '../calls/limited-call.ts'
import type { AskContext, KeyedDeps } from '../deps.ts'
import { onceForStep } from '../idempotency/once-for-step.ts'
import { billedCall } from '../money/billed-call.ts'
import { countEmbeddingTokens, embedInBatches } from './embed.ts'

interface Query {
  readonly modelId: string
  readonly text: string
  /** The step of a run that makes the search, as `run/path`. */
  readonly step?: string | null
}

interface QueryEmbedding {
  readonly vector: Float32Array
  readonly tokens: number
  /** Nano-USD. */
  readonly cost: bigint
}

/**
 * Embeds one search query for another service and charges the searcher's wallet. It counts as one of the organization's
 * concurrent calls, but not as a request of its key. Within a run, the call is charged once however often it is
 * repeated.
 * @throws {KisError} as `admit`.
 * @throws {KisError} `context_length_exceeded`: the text is too long for the model.
 * @throws {KisError} `idempotency_conflict`: the same step of the run is in progress.
 */
export function embedQuery(deps: KeyedDeps, ask: AskContext, query: Query): Promise<QueryEmbedding> {
  const once = (asking: AskContext) => limited(deps, asking, 'chat', (call, admitted) => embed(deps, admitted, call, query))
  const { step } = query
  if (step == null) return once(ask)
  const [runId = '', ...path] = step.split('/')
  return onceForStep(deps, { ...ask, caller: requirePrincipal(ask.caller) }, { runId, path: path.join('/'), isFree: () => true }, once)
}

async function embed(deps: KeyedDeps, ask: AskContext, call: LimitedCall, { modelId, text }: Query): Promise<QueryEmbedding> {
  const { principal, model } = admit(deps.catalog, ask.caller, {
    scope: 'knowledge:read',
    kind: 'embedding',
    modelParam: 'modelId',
    check: () => ({ model: modelId, text: textAt(text, 'text') }),
  })
  const texts = [withQueryPrefix(text, model)]
  const [tokens = 0] = await countEmbeddingTokens(deps, model, texts, () => 'text', ask)
  const context = call.admit(principal, null)
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
      const { vectors, usage } = await embedInBatches(deps, context, model, texts, { dimensions: null, purpose: 'query' }, signal)
      return { value: { vector: vectors[0]!, tokens: usage.quantities.inputTokens }, usage }
    },
  )
}
