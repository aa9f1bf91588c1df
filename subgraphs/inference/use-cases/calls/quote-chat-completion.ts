import { KisError, ServiceUnavailable } from '../../../common/errors.ts'
import type { Model } from '../../domain/catalog.ts'
import { withDeadline } from '../deadline.ts'
import type { AskContext, Ports } from '../deps.ts'
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

/** Time for one read of the store, also of a wallet that is being written. */
const QUOTE_TIMEOUT_MS = 10_000

/**
 * Returns the amounts that a chat request would hold: for its model, then for each fallback in order. It holds nothing
 * and calls no engine.
 * @throws {KisError} the error with which the request itself would be refused.
 * @throws {KisError} `service_unavailable`: billing does not answer.
 */
export async function quoteChatCompletion(deps: Ports, ask: AskContext, value: unknown): Promise<readonly QuotedModel[]> {
  const isStream = (value as { readonly stream?: unknown } | null | undefined)?.stream === true
  const { context, models, inputTokensFor, termsFor } = admitChat(deps, ask, null, value, isStream)
  const ceilings = models.map((model) => termsFor(model).ceiling)
  const holds = models.map(({ rateCard }, index) => ({ rateCard, ceiling: ceilings[index]! }))
  const quotes = await withDeadline(
    QUOTE_TIMEOUT_MS,
    () => new ServiceUnavailable('Billing'),
    context.signal,
    (signal) => deps.billing.quoteHolds(holds, { ...context, signal }),
  ).catch((error) => {
    throw error instanceof KisError || context.signal.aborted ? error : new ServiceUnavailable('Billing', { cause: error })
  })
  return models.map((model, index) => ({
    model,
    inputTokens: inputTokensFor(model),
    heldInputTokens: ceilings[index]!.inputTokens,
    maxOutputTokens: ceilings[index]!.outputTokens,
    ...quotes[index]!,
  }))
}
