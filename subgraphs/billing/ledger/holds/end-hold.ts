import { NotFound } from '../../../common/errors.ts'
import { checkHoldId } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { digestIds, sortedIds } from '../domain/ids.ts'
import { balanceChange, endPostings, type LedgerEntry } from '../domain/ledger.ts'
import { computePrice, MAX_NANO_USD, type Quantities, UNITS } from '../domain/money.ts'
import { fromStoredCard, ratesReached, toStoredRates } from '../domain/rate-card.ts'
import { type UsageRecord, type UsageSource, usagePosition } from '../domain/usage.ts'
import { type CallHold, type Hold, isRunHold, pickRun } from '../domain/wallet.ts'
import type { WalletDraft } from '../domain/wallet-draft.ts'

/** How a hold ends. `used` is what its call consumed; null: nothing is charged. */
interface Ending {
  readonly kind: 'settle' | 'void' | 'expire'
  readonly used: { readonly quantities: Quantities; readonly source: UsageSource } | null
}

/** How a hold ended, in nano-USD. */
export interface HoldOutcome {
  readonly id: string
  readonly state: 'settled' | 'voided' | 'expired'
  readonly charged: bigint
  readonly absorbed: bigint
  /** What returned to the wallet. */
  readonly freed: bigint
}

const STATES = { settle: 'settled', void: 'voided', expire: 'expired' } as const

/**
 * Ends an open hold, or gives its existing outcome: the first one stands.
 * @throws {NotFound} there is no such hold
 */
export async function endHold(deps: BillingDeps, organizationId: string, holdId: string, ending: Ending): Promise<HoldOutcome> {
  const id = checkHoldId(holdId)
  const { value } = await deps.writer.change(organizationId, { holdId: id }, (wallet) => {
    const first = wallet.end(id)
    if (first) return first
    const hold = wallet.hold(id)
    if (!hold) throw new NotFound('hold', id, 'id')
    return endOpenHold(deps, wallet, organizationId, id, hold, ending)
  })
  return toOutcome(id, value)
}

/**
 * Ends an open hold in `wallet` without its caller. It is charged by its last checkpoint, and released without one.
 */
export function expireHold(deps: BillingDeps, wallet: WalletDraft, organizationId: string, id: string): void {
  const hold = wallet.hold(id)!
  const isCharged = !isRunHold(hold) && UNITS.some((unit) => hold.checkpoint[unit] > 0)
  const used = isCharged ? ({ quantities: hold.checkpoint, source: 'estimated' } as const) : null
  endOpenHold(deps, wallet, organizationId, id, hold, { kind: 'expire', used })
}

/** Posts the end of an open hold in `wallet`. */
function endOpenHold(
  { clock, log, isExclusive }: BillingDeps,
  wallet: WalletDraft,
  organizationId: string,
  id: string,
  hold: Hold,
  { kind, used }: Ending,
): LedgerEntry {
  const at = clock.now()
  // An earlier version at the same store finds only its own form.
  const ids = isExclusive ? sortedIds(organizationId, id) : digestIds(organizationId, id)
  const entry = { _id: ids.entry, kind, reference: id, ...pickRun(hold), at }
  wallet.dropHold(id)
  if (isRunHold(hold)) return wallet.post({ ...entry, postings: endPostings(BigInt(hold.amount), 0n, 0n) })
  const { charged, absorbed } = used ? computeCharge(hold, used.quantities) : { charged: 0n, absorbed: 0n }
  if (absorbed > 0n) log.warn({ organizationId, holdId: id, absorbedNanoUsd: absorbed.toString() }, 'a call cost more than its hold')
  wallet.addSpending(hold, Number(charged), at)
  const unusedPages = (hold.ocr?.pages ?? 0) - (used?.quantities.pages ?? 0)
  if (hold.ocr && unusedPages > 0) wallet.addPages({ ...hold.ocr, pages: -unusedPages })
  return wallet.post(
    { ...entry, postings: endPostings(BigInt(hold.amount) - retainedByRun(wallet, hold, charged), charged, absorbed) },
    used ? usageRecord(ids.usage, organizationId, hold, used, Number(charged), at) : undefined,
  )
}

/** What a call does not use returns to the hold of its run while that is open, and so stays reserved. */
function retainedByRun(wallet: WalletDraft, { runHoldId, amount }: CallHold, charged: bigint): bigint {
  const run = runHoldId === undefined ? undefined : wallet.hold(runHoldId)
  if (!run || !isRunHold(run)) return 0n
  const left = amount - Number(charged)
  wallet.putHold(runHoldId!, { ...run, amount: run.amount + left })
  return BigInt(left)
}

function toOutcome(id: string, { kind, postings }: LedgerEntry): HoldOutcome {
  return {
    id,
    state: STATES[kind as Ending['kind']],
    charged: BigInt(-balanceChange(postings)),
    absorbed: BigInt(-(postings.absorbed ?? 0)),
    freed: BigInt(postings.wallet ?? 0),
  }
}

function computeCharge({ amount, rateCard }: CallHold, quantities: Quantities) {
  const held = BigInt(amount)
  const cost = computePrice(quantities, ratesReached(fromStoredCard(rateCard), quantities))
  const charged = cost < held ? cost : held
  // Bounded like every amount: a wildly wrong count must not keep the hold from ending.
  const absorbed = cost < MAX_NANO_USD ? cost - charged : MAX_NANO_USD - charged
  return { charged, absorbed }
}

function usageRecord(
  _id: string,
  organizationId: string,
  hold: CallHold,
  { quantities, source }: NonNullable<Ending['used']>,
  amount: number,
  at: Date,
): UsageRecord {
  const { apiKeyId, modelId, operation, requestId, rateCard, rateCardVersion } = hold
  const rates = toStoredRates(ratesReached(fromStoredCard(rateCard), quantities))
  const position = usagePosition(at, _id)
  return { _id, organizationId, position, apiKeyId, modelId, operation, requestId, quantities, rates, rateCardVersion, amount, source, at }
}
