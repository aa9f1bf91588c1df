import { KisError, NotFound } from '../../common/errors.ts'
import type { Principal } from '../../common/principal.ts'
import { MAX_NANO_USD } from '../domain/money.ts'
import type { BillingDeps } from './deps.ts'
import { amountOf, type PlaceHoldInput } from './place-hold.ts'

export interface HoldQuote {
  /** Nano-USD. */
  readonly amount: bigint
  readonly isCovered: boolean
}

/** Models of one request: one and its fallbacks. */
const MAX_QUOTES = 64

/** What each hold would take, and whether the wallet, as it is now, covers it. Nothing is held, so that a hold placed later may be refused. @throws {KisError} */
export async function quoteHolds(
  { collections }: BillingDeps,
  { organizationId }: Principal,
  holds: readonly Pick<PlaceHoldInput, 'ceiling' | 'rateCard'>[],
): Promise<readonly HoldQuote[]> {
  if (holds.length > MAX_QUOTES) throw new KisError('array_above_max_length', `At most ${MAX_QUOTES} holds are quoted.`, { param: 'holds' })
  const wallet = await collections.wallets.findOne({ _id: organizationId })
  if (!wallet) throw new NotFound('organization', organizationId)
  return holds.map((hold) => {
    const amount = amountOf(hold)
    return { amount, isCovered: amount <= BigInt(wallet.available) && amount <= MAX_NANO_USD }
  })
}
