import { KisError, ServiceUnavailable, TooBusy } from '../../../common/errors.ts'
import type { Principal } from '../../../common/identity/principal.ts'
import { timeOfId } from '../../../common/process/ids.ts'
import { requireInForce } from '../../accounts/use-cases/rules-in-force.ts'
import { checkExternalId, checkHoldId, checkQuantities, checkRateCard, checkTtl } from '../../use-cases/checks.ts'
import type { BillingDeps } from '../../use-cases/deps.ts'
import { nextReset, spentIn } from '../domain/key-spending.ts'
import { holdPostings, type Postings } from '../domain/ledger.ts'
import { MAX_NANO_USD, NOTHING, type Quantities, type Rates, toStored } from '../domain/money.ts'
import { computeWorstCase, toStoredCard } from '../domain/rate-card.ts'
import type { Operation } from '../domain/usage.ts'
import {
  type CallHold,
  type Hold,
  isRunHold,
  listSpenders,
  MAX_OPEN_HOLDS,
  MAX_PENDING_ENTRIES,
  monthOf,
  type PageCount,
  pickRun,
  type RunHold,
} from '../domain/wallet.ts'
import type { WalletDraft } from '../domain/wallet-draft.ts'
import { HoldConflict, HoldEnded, InsufficientQuota, PageQuotaReached, RunLimitExceeded, SpendLimitReached } from './hold-errors.ts'

/** Rates by the names of their units, and the tiers above them. */
export type RateCardInput = Rates & { readonly version: string; readonly tiers: readonly RateTierInput[] }
type RateTierInput = Rates & { readonly aboveInputTokens: number }

/** The call for which money is reserved. `ceiling` is the most that it can consume. */
export interface PlaceHoldInput {
  readonly id: string
  readonly operation: Operation
  readonly modelId: string
  readonly requestId: string
  readonly rateCard: RateCardInput
  readonly ceiling: Quantities
  readonly ttlSeconds: number
  /** The hold of the run that contains the call as a step; null or absent: the hold is taken from the wallet. */
  readonly runHoldId?: string | null
  /**
   * The process that does the work. The work ends if the process dies. Null or absent: another process may continue.
   */
  readonly holder?: string | null
}

/**
 * An id is created for one call. An older id is a repetition that no caller waits for. The value is also the largest
 * allowed difference between clocks.
 */
const MAX_ID_AGE_MS = 60_000

/**
 * Reserves the most that a call can cost, from the wallet or from its run's hold, and authorizes the call to reach an
 * engine. Idempotent while the hold is open: the same id and amount return the same hold.
 * @throws {InsufficientQuota} the wallet has too little
 * @throws {SpendLimitReached} the key, or an ancestor of it, may not spend that much
 * @throws {RunLimitExceeded} the run may not spend that much
 * @throws {PageQuotaReached} the plan does not allow that many pages in this month
 * @throws {HoldConflict} the id's hold has another amount or has ended
 * @throws {HoldEnded} the run's hold has ended
 * @throws {StalePrincipal} the rules have changed since the principal was read
 */
export async function placeHold(deps: BillingDeps, principal: Principal, input: PlaceHoldInput): Promise<Hold> {
  const runHoldId = input.runHoldId == null ? undefined : checkHoldId(input.runHoldId)
  const now = deps.clock.now()
  const hold = newHold(input, principal, now)
  return reserve(deps, principal, input.id, runHoldId ? { ...hold, runHoldId } : hold, (wallet) => {
    if (hold.ocr) requirePages(wallet, principal, hold.ocr, now)
    const postings = runHoldId ? reserveFromRun(wallet, runHoldId, hold) : reserveFromWallet(wallet, hold, now)
    // The draft has changes of other calls, too, so a refused call must not change it.
    if (hold.ocr) wallet.addPages(hold.ocr)
    return postings
  })
}

/**
 * @throws {HoldEnded} the run's hold has ended
 * @throws {RunLimitExceeded} the run may not spend that much
 */
function reserveFromRun(wallet: WalletDraft, runHoldId: string, { amount }: CallHold): Postings {
  const run = wallet.hold(runHoldId)
  if (!run || !isRunHold(run)) throw new HoldEnded(runHoldId)
  if (run.amount < amount) throw new RunLimitExceeded()
  wallet.putHold(runHoldId, { ...run, amount: run.amount - amount })
  return {}
}

interface PlaceRunHoldInput {
  readonly id: string
  /** Nano-USD. */
  readonly amount: bigint
  readonly requestId: string
  readonly ttlSeconds: number
  readonly holder?: string | null
}

/**
 * Reserves the most that a run of several calls may spend. Idempotent until the run's first call.
 * @throws as `placeHold`
 */
export async function placeRunHold(deps: BillingDeps, principal: Principal, input: PlaceRunHoldInput): Promise<Hold> {
  if (input.amount > MAX_NANO_USD) throw new InsufficientQuota()
  if (input.amount < 0n) throw new KisError('integer_below_min_value', 'The amount of a hold is at least 0.', { param: 'amount' })
  const now = deps.clock.now()
  const hold: RunHold = {
    isRun: true,
    amount: toStored(input.amount),
    expiresAt: new Date(now.getTime() + checkTtl(input.ttlSeconds) * 1_000),
    ...ofKey(principal),
    ...heldBy(input),
    requestId: checkExternalId(input.requestId, 'requestId'),
  }
  return reserve(deps, principal, input.id, hold, (wallet) => reserveFromWallet(wallet, hold, now))
}

/**
 * Places a hold in the wallet's next write. `computePostings` sees the wallet as it is then, and returns the postings of
 * the hold's ledger entry.
 */
async function reserve(
  deps: BillingDeps,
  principal: Principal,
  holdId: string,
  hold: Hold,
  computePostings: (wallet: WalletDraft) => Postings,
): Promise<Hold> {
  const { organizationId } = principal
  const id = checkHoldId(holdId)
  const now = deps.clock.now()
  if (Math.abs(now.getTime() - timeOfId(id)!) > MAX_ID_AGE_MS)
    throw new KisError('invalid_request', `The hold id \`${id}\` was not created within the last 60 s.`, { param: 'id' })
  const _id = deps.ids('ent')
  const { value } = await deps.writer.change(organizationId, { holdId: id }, (wallet) => {
    const open = wallet.hold(id)
    if (open?.amount === hold.amount) return open
    if (open) throw new HoldConflict(id, 'is open with another amount')
    if (wallet.end(id)) throw new HoldConflict(id, 'has ended')
    requireInForce(wallet, principal)
    if (wallet.openHolds >= MAX_OPEN_HOLDS)
      throw new TooBusy(`This organization has reached its limit of ${MAX_OPEN_HOLDS} concurrent calls.`)
    if (wallet.pendingEntries >= MAX_PENDING_ENTRIES) throw new ServiceUnavailable('The ledger')
    wallet.post({ _id, kind: 'hold', postings: computePostings(wallet), reference: id, ...pickRun(hold), at: now })
    wallet.putHold(id, hold)
    return hold
  })
  return value
}

/**
 * Returns the postings of a hold that is taken from the wallet.
 * @throws {InsufficientQuota} the wallet has too little
 * @throws {SpendLimitReached} the key, or an ancestor of it, may not spend that much
 */
export function reserveFromWallet(wallet: WalletDraft, hold: Pick<Hold, 'amount' | 'apiKeyId' | 'ancestors'>, now: Date): Postings {
  const { amount } = hold
  if (wallet.available < amount) throw new InsufficientQuota()
  for (const id of listSpenders(hold)) requireWithinLimit(wallet, id, amount, now, id === hold.apiKeyId)
  return holdPostings(BigInt(amount))
}

/** @throws {PageQuotaReached} the plan does not allow that many pages in this month */
function requirePages(wallet: WalletDraft, { plan: { ocrPages = null } }: Principal, { month, pages }: PageCount, now: Date): void {
  const used = wallet.pages(month)
  if (ocrPages !== null && used + pages > ocrPages) throw new PageQuotaReached(used, ocrPages, pages, nextReset('month', now)!)
}

/**
 * Returns the most that the call can cost, in nano-USD.
 * @throws {KisError} the ceiling or the rate card is wrong
 */
export function holdAmount({ ceiling, rateCard }: Pick<PlaceHoldInput, 'ceiling' | 'rateCard'>): bigint {
  return computeWorstCase(checkRateCard(rateCard, 'rateCard'), checkQuantities(ceiling, 'ceiling'))
}

/**
 * Checks the limit of a key. It covers what the key and its descendants have spent in the period, what their open holds
 * may still spend, and the new hold. The sum may exceed exact numbers. `isOwn`: it is the caller's key, whose figures
 * the caller may see.
 * @throws {SpendLimitReached} the sum exceeds the limit
 */
function requireWithinLimit(wallet: WalletDraft, apiKeyId: string, amount: number, now: Date, isOwn: boolean): void {
  const spending = wallet.spending(apiKeyId)
  if (!spending.limit) return
  const { limit } = spending
  const [spent, held] = [spentIn(spending, limit.period, now), wallet.heldBy(apiKeyId)]
  if (BigInt(spent) + BigInt(held) + BigInt(amount) > BigInt(limit.amount))
    throw new SpendLimitReached(nextReset(limit.period, now), isOwn ? { limit, spent, held } : null)
}

function ofKey({ apiKeyId, ancestors }: Principal): Pick<Hold, 'apiKeyId' | 'ancestors'> {
  return ancestors.length > 0 ? { apiKeyId, ancestors } : { apiKeyId }
}

function heldBy({ holder }: Pick<PlaceHoldInput, 'holder'>): Pick<Hold, 'holder'> {
  return holder == null ? {} : { holder: checkExternalId(holder, 'holder') }
}

function newHold(input: PlaceHoldInput, principal: Principal, now: Date): CallHold {
  const amount = holdAmount(input)
  const ttlSeconds = checkTtl(input.ttlSeconds)
  if (amount > MAX_NANO_USD) throw new InsufficientQuota()
  return {
    amount: toStored(amount),
    expiresAt: new Date(now.getTime() + ttlSeconds * 1_000),
    ...ofKey(principal),
    ...heldBy(input),
    modelId: checkExternalId(input.modelId, 'modelId'),
    operation: input.operation,
    requestId: checkExternalId(input.requestId, 'requestId'),
    rateCard: toStoredCard(checkRateCard(input.rateCard, 'rateCard')),
    rateCardVersion: checkExternalId(input.rateCard.version, 'rateCard.version'),
    checkpoint: NOTHING,
    ...(input.ceiling.pages > 0 && { ocr: { month: monthOf(now), pages: input.ceiling.pages } }),
  }
}
