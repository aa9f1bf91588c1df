import { KisError, NotFound } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { MAX_NANO_USD, toStored } from '../domain/money.ts'
import { WalletDraft } from '../domain/wallet-draft.ts'
import { holdAmount, type PlaceHoldInput, reserveFromWallet } from './place-hold.ts'

interface HoldQuote {
  /** Nano-USD. */
  readonly amount: bigint
  readonly isCovered: boolean
}

/** Models of one request: one and its fallbacks. */
const MAX_QUOTES = 64

/**
 * Computes what each hold would take, and whether the wallet and the key's spend limit would cover it alone right now.
 * Nothing is reserved, so a later hold may still be refused.
 * @throws {KisError} the terms of a hold are wrong, or there are too many
 */
export async function quoteHolds(
  { collections, clock }: BillingDeps,
  { organizationId, ...key }: Principal,
  holds: readonly Pick<PlaceHoldInput, 'ceiling' | 'rateCard'>[],
): Promise<readonly HoldQuote[]> {
  if (holds.length > MAX_QUOTES) throw new KisError('array_above_max_length', `At most ${MAX_QUOTES} holds are quoted.`, { param: 'holds' })
  const wallet = await collections.wallets.findOne({ _id: organizationId })
  if (!wallet) throw new NotFound('organization', organizationId)
  const draft = new WalletDraft(wallet, [])
  return holds.map((hold) => {
    const amount = holdAmount(hold)
    return { amount, isCovered: amount <= MAX_NANO_USD && isCovered(draft, toStored(amount), key, clock.now()) }
  })
}

/** Applies the rule of the real hold to a draft that is never written. */
function isCovered(
  draft: WalletDraft,
  amount: number,
  { apiKeyId, ancestors }: Pick<Principal, 'apiKeyId' | 'ancestors'>,
  now: Date,
): boolean {
  try {
    reserveFromWallet(draft, { amount, apiKeyId, ancestors }, now)
    return true
  } catch (error) {
    if (error instanceof KisError && error.code === 'insufficient_quota') return false
    throw error
  }
}
