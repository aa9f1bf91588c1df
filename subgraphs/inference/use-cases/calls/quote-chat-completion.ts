import type { Model } from '../../domain/catalog.ts'
import type { AskContext, Ports } from '../deps.ts'
import { quoteHolds } from '../money/quote-holds.ts'
import { admitChat } from './admit-chat.ts'

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
 * and calls no engine.
 * @throws {KisError} the error with which the request itself would be refused.
 * @throws {KisError} `service_unavailable`: billing does not answer.
 */
export async function quoteChatCompletion(deps: Ports, ask: AskContext, value: unknown): Promise<readonly QuotedModel[]> {
  const isStream = (value as { readonly stream?: unknown } | null | undefined)?.stream === true
  const { context, models, inputTokensFor, termsFor } = await admitChat(deps, ask, null, value, isStream)
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
