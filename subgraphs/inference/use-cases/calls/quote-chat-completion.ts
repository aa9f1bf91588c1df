import type { Model } from '../../domain/catalog.ts'
import type { RequestContext, With } from '../deps.ts'
import { quoteHolds } from '../money/quote-holds.ts'
import { admitChat } from './admit-chat.ts'
import { consumeRequest } from './limited-call.ts'

/** The most that one model would cost. Amounts are nano-USD. */
export interface QuotedModel {
  readonly model: Model
  readonly inputTokens: number
  readonly heldInputTokens: number
  readonly maxOutputTokens: number
  readonly amount: bigint
  readonly isCovered: boolean
}

/**
 * Returns the amounts that a chat request would hold: for its model, then for each fallback in order. It holds nothing
 * and calls no engine. It counts as one request of the caller's key.
 * @throws {KisError} the error with which the request itself would be refused.
 * @throws {KisError} `service_unavailable`: billing does not answer.
 * @throws {KisError} `rate_limit_exceeded`: the caller's key has no request left.
 */
export async function quoteChatCompletion(
  deps: With<'limits'>,
  requestContext: RequestContext,
  value: unknown,
): Promise<readonly QuotedModel[]> {
  const isStream = (value as { readonly stream?: unknown } | null | undefined)?.stream === true
  const { context, models, inputTokensFor, termsFor } = await admitChat(deps, requestContext, null, value, isStream)
  await consumeRequest(deps, context)
  const ceilings = models.map((model) => termsFor(model).ceiling)
  const quotes = await quoteHolds(
    deps,
    context,
    models.map((model, index) => ({ model, ceiling: ceilings[index]! })),
  )
  return models.map((model, index) => ({
    model,
    inputTokens: inputTokensFor(model),
    heldInputTokens: ceilings[index]!.inputTokens,
    maxOutputTokens: ceilings[index]!.outputTokens,
    ...quotes[index]!,
  }))
}
