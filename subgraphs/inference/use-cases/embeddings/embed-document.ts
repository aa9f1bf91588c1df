import { checkInteger, listAt, MAX_INT, textAt } from '../../../common/check.ts'
import { EmbeddingStopped } from '../../../common/errors.ts'
import { requirePrincipal } from '../../../common/identity/principal.ts'
import type { Model } from '../../domain/catalog.ts'
import { StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import { providerUsage, toQuantities } from '../../domain/tokens/usage.ts'
import type { HoldQuote } from '../../ports/billing.ts'
import { NeverSent } from '../../ports/engines.ts'
import { admit } from '../calls/admit.ts'
import type { CallContext, HoldDeps, Ports, RequestContext, With } from '../deps.ts'
import { authorizeHold, HOLD_TTL_SECONDS, openHold, toOpenHold } from '../money/hold.ts'
import { countEmbeddingTokens, type Embedded, embedInBatches, sumTokens } from './embed.ts'

/** Most passages of one batch. So few are embedded well within a job's lease. */
const MAX_CHUNKS = 64

/**
 * Holds the price of `tokens`, which includes marks and prefixes, and returns the hold's id. A document is embedded
 * under one hold, batch by batch, by any replica; only the hold's id connects the calls. Between two batches the hold
 * lasts `HOLD_TTL_SECONDS`.
 * @throws {KisError} the error of a check or of billing; nothing is held.
 */
export async function openEmbedding(
  deps: HoldDeps & With<'load'>,
  requestContext: RequestContext,
  { modelId, tokens }: { readonly modelId: string; readonly tokens: number },
): Promise<string> {
  // Only a new document is refused, because it can wait. A started one is finished: its earlier batches are paid.
  deps.load.check('background')
  const { context, model } = admitEmbedding(deps, requestContext, modelId)
  checkInteger(tokens, 'tokens', 0, MAX_INT)
  const { id, stopRenewal } = await openHold(deps, context, {
    operation: 'embedding',
    model,
    ceiling: toQuantities(tokens, 0),
    atLeast: toQuantities(0, 0),
    isContinued: true,
  })
  stopRenewal()
  return id
}

interface EmbeddingQuote extends HoldQuote {
  /** The price of a million tokens. */
  readonly perMillion: bigint
}

/**
 * Gives what `openEmbedding` would hold, in nano-USD, and whether the wallet covers it now. Nothing is held.
 * @throws {KisError} the error of a check or of billing.
 */
export async function quoteEmbedding(
  deps: Ports,
  requestContext: RequestContext,
  { modelId, tokens }: { readonly modelId: string; readonly tokens: number },
): Promise<EmbeddingQuote> {
  const { context, model } = admitEmbedding(deps, requestContext, modelId)
  checkInteger(tokens, 'tokens', 0, MAX_INT)
  const { rateCard } = model
  const [quote] = await deps.billing.quoteHolds([{ rateCard, ceiling: toQuantities(tokens, 0) }], context)
  return { ...quote!, perMillion: rateCard.inputTokens }
}

/**
 * Embeds a batch of passages under an open hold. It first reports the tokens of the earlier batches to billing. It
 * calls an engine only if billing confirms that the hold is open and the caller's, and that the caller's rules are in
 * force.
 * @throws {KisError} the error of billing or the engine; the batch can be repeated.
 * @throws {EmbeddingStopped} a limit or a deadline of ours ended the batch; what was sent of it is used, too.
 */
export async function embedChunks(
  deps: HoldDeps,
  requestContext: RequestContext,
  input: { readonly holdId: string; readonly modelId: string; readonly texts: readonly string[]; readonly tokensBefore: number },
): Promise<Pick<Embedded, 'vectors' | 'tokenStates'> & { readonly tokens: number }> {
  const { context, model } = admitEmbedding(deps, requestContext, input.modelId)
  checkInteger(input.tokensBefore, 'tokensBefore', 0, MAX_INT)
  listAt(input.texts, 'texts', 1, MAX_CHUNKS)
  const texts = input.texts.map((text) => model.passagePrefix + text)
  const counted = await countEmbeddingTokens(deps, model, texts, (index) => `texts[${index}]`, requestContext)
  const before = toQuantities(input.tokensBefore, 0)
  await deps.billing.checkpointHold(input.holdId, before, HOLD_TTL_SECONDS, context)
  await authorizeHold(deps, input.holdId, before, context)
  const { stopRenewal } = toOpenHold(deps, context, input.holdId, before)
  let sent = 0
  try {
    const options = { dimensions: null, purpose: 'passage', withTokenEmbeddings: true } as const
    const { vectors, tokenStates, usage } = await embedInBatches(deps, context, model, counted, options, requestContext.signal, (count) => {
      sent = count
    })
    return { vectors, tokenStates, tokens: usage.quantities.inputTokens }
  } catch (error) {
    if (error instanceof StoppedByLimit) throw new EmbeddingStopped(error, sumTokens(counted.counts.slice(0, sent)))
    throw error instanceof NeverSent ? error.cause : error
  } finally {
    stopRenewal()
  }
}

/**
 * Charges the tokens of all batches as the engine reported them, and returns the charge in nano-USD. Can be repeated.
 * @throws {KisError} the error of billing, or `tokens` is invalid.
 */
export async function closeEmbedding(
  deps: HoldDeps,
  requestContext: RequestContext,
  { holdId, tokens }: { readonly holdId: string; readonly tokens: number },
): Promise<bigint> {
  const principal = requirePrincipal(requestContext.caller)
  checkInteger(tokens, 'tokens', 0, MAX_INT)
  const usage = providerUsage(toQuantities(tokens, 0))
  return toOpenHold(deps, { ...requestContext, caller: principal }, holdId, usage.quantities).resolve(usage)
}

/** @throws {KisError} as `admit`: the caller may not use this model. */
export function admitEmbedding(
  deps: Ports,
  requestContext: RequestContext,
  modelId: string,
): { readonly context: CallContext; readonly model: Model } {
  const { principal, model } = admit(deps.catalog, requestContext.caller, {
    scope: null,
    kind: 'embedding',
    modelParam: 'modelId',
    check: () => ({ model: textAt(modelId, 'modelId') }),
  })
  return { context: { ...requestContext, caller: principal }, model }
}
