import { KisError, ServiceUnavailable } from '../../common/errors.ts'
import { timeOfId } from '../../common/ids.ts'
import type { Principal } from '../../common/principal.ts'
import { endEntryId } from '../domain/ids.ts'
import { holdPostings } from '../domain/ledger.ts'
import { MAX_NANO_USD, NOTHING, type Quantities, type Rates, toStored } from '../domain/money.ts'
import { toStoredCard, worstCaseOf } from '../domain/rate-card.ts'
import type { Operation } from '../domain/usage.ts'
import { type Hold, MAX_OPEN_HOLDS, MAX_PENDING_ENTRIES } from '../domain/wallet.ts'
import { checkForeignId, checkHoldId, checkQuantities, checkRateCard, checkTtl } from './checks.ts'
import type { BillingDeps } from './deps.ts'
import { HoldConflict, InsufficientQuota } from './hold-errors.ts'

/** Rates of the units by their names, and the tiers above them. */
export type RateCardInput = Rates & { readonly version: string; readonly tiers: readonly RateTierInput[] }
export type RateTierInput = Rates & { readonly aboveInputTokens: number }

export interface PlaceHoldInput {
  readonly id: string
  readonly operation: Operation
  readonly modelId: string
  readonly requestId: string
  readonly rateCard: RateCardInput
  readonly ceiling: Quantities
  readonly ttlSeconds: number
}

/** An id is made for its one call; an older one is a repeat that nobody waits for. Also the most that clocks may differ. */
const MAX_ID_AGE_MS = 60_000

/**
 * Reserves the worst case of a call. Repeatable while the hold is open: the same id and amount give the same hold.
 * @throws {InsufficientQuota} nothing is held. @throws {HoldConflict} the id has another amount, or its hold has ended.
 */
export async function placeHold(deps: BillingDeps, { organizationId, apiKeyId }: Principal, input: PlaceHoldInput): Promise<Hold> {
  const id = checkHoldId(input.id)
  const now = deps.clock.now()
  if (Math.abs(now.getTime() - timeOfId(id)!) > MAX_ID_AGE_MS)
    throw new KisError('invalid_request', `The hold id \`${id}\` was not made within the last 60 s.`, { param: 'id' })
  const hold = newHold(input, apiKeyId, now)
  const entry = { _id: deps.ids('ent'), kind: 'hold', postings: holdPostings(BigInt(hold.amount)), reference: id, at: now } as const
  const end = endEntryId(organizationId, id)
  const { value } = await deps.writer.change(organizationId, end, (wallet) => {
    const open = wallet.hold(id)
    if (open?.amount === hold.amount) return open
    if (open) throw new HoldConflict(id, 'is open with another amount')
    if (wallet.entry(end)) throw new HoldConflict(id, 'has ended')
    if (wallet.openHolds >= MAX_OPEN_HOLDS) throw new ServiceUnavailable('Room for another call of this organization')
    if (wallet.pendingEntries >= MAX_PENDING_ENTRIES) throw new ServiceUnavailable('The ledger')
    if (wallet.available < hold.amount) throw new InsufficientQuota()
    wallet.post(entry)
    wallet.putHold(id, hold)
    return hold
  })
  return value
}

function newHold(input: PlaceHoldInput, apiKeyId: string, now: Date): Hold {
  const ceiling = checkQuantities(input.ceiling, 'ceiling')
  const card = checkRateCard(input.rateCard, 'rateCard')
  const ttlSeconds = checkTtl(input.ttlSeconds)
  const amount = worstCaseOf(card, ceiling)
  if (amount > MAX_NANO_USD) throw new InsufficientQuota()
  return {
    state: 'placed',
    amount: toStored(amount),
    expiresAt: new Date(now.getTime() + ttlSeconds * 1_000),
    apiKeyId,
    modelId: checkForeignId(input.modelId, 'modelId'),
    operation: input.operation,
    requestId: checkForeignId(input.requestId, 'requestId'),
    rateCard: toStoredCard(card),
    rateCardVersion: checkForeignId(input.rateCard.version, 'rateCard.version'),
    checkpoint: NOTHING,
  }
}
