import { checkInteger, listAt, textAt } from '../../../common/check.ts'
import { requirePrincipal } from '../../../common/identity/principal.ts'
import type { Model } from '../../domain/catalog.ts'
import { providerUsage, toQuantities } from '../../domain/tokens/usage.ts'
import { admit } from '../calls/admit.ts'
import type { AskContext, CallContext, HoldDeps, Ports, With } from '../deps.ts'
import { HOLD_TTL_SECONDS, letBegin, openHold, toOpenHold } from '../money/hold.ts'
import { countEmbeddingTokens, embedInBatches } from './embed.ts'

/** Few enough that a batch answers well within a job's lease. */
const MAX_PASSAGES = 64
/** GraphQL's 32-bit Int. */
const MAX_TOKENS = 2 ** 31 - 1

/**
 * Holds the price of `tokens`, marks and prefixes included. A document is embedded under one hold, batch by batch, by
 * any replica: the hold's id is all that ties its calls together. Between two batches the hold lasts
 * `HOLD_TTL_SECONDS`. Gives the hold's id.
 * @throws {KisError} nothing is held.
 */
export async function openEmbedding(
  deps: HoldDeps & With<'load'>,
  ask: AskContext,
  { modelId, tokens }: { readonly modelId: string; readonly tokens: number },
): Promise<string> {
  // Documents wait best; one that has begun is finished, because the batches behind it are paid.
  deps.load.check('background')
  const { context, model } = admitEmbedding(deps, ask, modelId)
  checkInteger(tokens, 'tokens', 0, MAX_TOKENS)
  const { id, leave } = await openHold(deps, context, {
    operation: 'embedding',
    model,
    ceiling: toQuantities(tokens, 0),
    atLeast: toQuantities(0, 0),
    goesOn: true,
  })
  leave()
  return id
}

/**
 * Embeds a batch of passages under an open hold. Billing first hears what the earlier batches used, and so says whether
 * the hold is open and the caller's, and whether his rules are those in force: no engine works otherwise.
 * @throws {KisError} the batch may be repeated.
 */
export async function embedPassages(
  deps: HoldDeps,
  ask: AskContext,
  input: { readonly holdId: string; readonly modelId: string; readonly texts: readonly string[]; readonly tokensBefore: number },
): Promise<{ readonly vectors: readonly Float32Array[]; readonly tokens: number }> {
  const { context, model } = admitEmbedding(deps, ask, input.modelId)
  checkInteger(input.tokensBefore, 'tokensBefore', 0, MAX_TOKENS)
  listAt(input.texts, 'texts', 1, MAX_PASSAGES)
  const texts = input.texts.map((text) => model.passagePrefix + text)
  await countEmbeddingTokens(deps, model, texts, (index) => `texts[${index}]`, ask)
  const before = toQuantities(input.tokensBefore, 0)
  await deps.billing.checkpointHold(input.holdId, before, HOLD_TTL_SECONDS, context)
  await letBegin(deps, input.holdId, before, context)
  const { leave } = toOpenHold(deps, context, input.holdId, before)
  try {
    const { vectors, usage } = await embedInBatches(deps, context, model, texts, { dimensions: null, purpose: 'passage' }, ask.signal)
    return { vectors, tokens: usage.quantities.inputTokens }
  } finally {
    leave()
  }
}

/**
 * Charges the sum of what the batches used, as the engine reported it. Repeatable. Gives the charge.
 * @throws {KisError}
 */
export async function closeEmbedding(
  deps: HoldDeps,
  ask: AskContext,
  { holdId, tokens }: { readonly holdId: string; readonly tokens: number },
): Promise<bigint> {
  const principal = requirePrincipal(ask.caller)
  checkInteger(tokens, 'tokens', 0, MAX_TOKENS)
  const usage = providerUsage(toQuantities(tokens, 0))
  return toOpenHold(deps, { ...ask, caller: principal }, holdId, usage.quantities).resolve(usage)
}

/** @throws {KisError} the caller may not embed with this model. */
export function admitEmbedding(deps: Ports, ask: AskContext, modelId: string): { readonly context: CallContext; readonly model: Model } {
  const { principal, model } = admit(deps.catalog, ask.caller, {
    audience: 'services',
    kind: 'embedding',
    modelParam: 'modelId',
    check: () => ({ model: textAt(modelId, 'modelId') }),
  })
  return { context: { ...ask, caller: principal }, model }
}
