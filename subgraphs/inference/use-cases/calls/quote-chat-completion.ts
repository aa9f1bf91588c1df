import { KisError, ServiceUnavailable } from '../../../common/errors.ts'
import type { Model } from '../../domain/catalog.ts'
import { withDeadline } from '../deadline.ts'
import type { AskContext, Ports } from '../deps.ts'
import { admitChat } from './admit-chat.ts'

/** What one model would cost at most. Amounts are nano-USD. */
export interface QuotedModel {
  readonly model: Model
  readonly inputTokens: number
  readonly heldInputTokens: number
  readonly maxOutputTokens: number
  readonly amount: bigint
  readonly isCovered: boolean
}

/** One read of the store, and of a wallet that is written at the same time. */
const QUOTE_TIMEOUT_MS = 10_000

/**
 * What a chat request would hold, for its model and then for each fallback that would be asked. It holds nothing and
 * calls no engine.
 * @throws {KisError} what the request itself would be refused with.
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
