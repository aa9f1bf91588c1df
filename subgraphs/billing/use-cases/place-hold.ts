import { KisError, ServiceUnavailable } from '../../common/errors.ts'
import { timeOfId } from '../../common/ids.ts'
import type { Principal } from '../../common/principal.ts'
import { endEntryId } from '../domain/ids.ts'
import { holdPostings } from '../domain/ledger.ts'
import { MAX_NANO_USD, priceOf, type Quantities, type Rates, toStored, UNITS, type Unit } from '../domain/money.ts'
import type { Operation } from '../domain/usage.ts'
import { type Hold, MAX_OPEN_HOLDS, MAX_PENDING_ENTRIES } from '../domain/wallet.ts'
import { checkForeignId, checkHoldId, checkQuantities, checkRates, checkTtl } from './checks.ts'
import type { BillingDeps } from './deps.ts'
import { HoldConflict, InsufficientQuota } from './hold-errors.ts'

export interface PlaceHoldInput {
  readonly id: string
  readonly operation: Operation
  readonly modelId: string
  readonly requestId: string
  readonly rateCard: Rates & { readonly version: string }
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
  const rates = checkRates(input.rateCard, 'rateCard')
  const ttlSeconds = checkTtl(input.ttlSeconds)
  const amount = priceOf(ceiling, rates)
  if (amount > MAX_NANO_USD) throw new InsufficientQuota()
  return {
    state: 'placed',
    amount: toStored(amount),
    expiresAt: new Date(now.getTime() + ttlSeconds * 1_000),
    apiKeyId,
    modelId: checkForeignId(input.modelId, 'modelId'),
    operation: input.operation,
    requestId: checkForeignId(input.requestId, 'requestId'),
    rates: Object.fromEntries(UNITS.map((unit) => [unit, toStored(rates[unit])])) as Record<Unit, number>,
    rateCardVersion: checkForeignId(input.rateCard.version, 'rateCard.version'),
    checkpoint: { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, audioMilliseconds: 0 },
  }
}
