import { KisError, ServiceUnavailable } from '../../../common/errors.ts'
import type { Model } from '../../domain/catalog.ts'
import type { HoldQuote, Quantities } from '../../ports/billing.ts'
import { withDeadline } from '../deadline.ts'
import type { CallContext, Ports } from '../deps.ts'

/** Time for one read of the store, also of a wallet that is being written. */
const QUOTE_TIMEOUT_MS = 10_000

/**
 * Returns what a hold of each ceiling would reserve at the price of its model, in order. Holds nothing.
 * @throws {KisError} `service_unavailable`: billing does not respond.
 */
export function quoteHolds(
  deps: Pick<Ports, 'billing'>,
  context: CallContext,
  of: readonly { readonly model: Model; readonly ceiling: Quantities }[],
): Promise<readonly HoldQuote[]> {
  return withDeadline(
    QUOTE_TIMEOUT_MS,
    () => new ServiceUnavailable('Billing'),
    context.signal,
    (signal) =>
      deps.billing.quoteHolds(
        of.map(({ model: { rateCard }, ceiling }) => ({ rateCard, ceiling })),
        { ...context, signal },
      ),
  ).catch((error) => {
    throw error instanceof KisError || context.signal.aborted ? error : new ServiceUnavailable('Billing', { cause: error })
  })
}
