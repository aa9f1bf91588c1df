import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError, ServiceUnavailable, StalePrincipal } from '../../../common/errors.ts'
import { CONFIRM_MS } from '../../../common/identity/principal.ts'
import { renewWhile } from '../../../common/process/renew-while.ts'
import type { Model } from '../../domain/catalog.ts'
import { toQuantities, type Usage } from '../../domain/tokens/usage.ts'
import type { BillingContext, HoldRequest, Quantities } from '../../ports/billing.ts'
import { withDeadline } from '../deadline.ts'
import type { CallContext, HoldDeps, Ports } from '../deps.ts'

/** Time to open a hold, which is one write of the store. */
const OPEN_TIMEOUT_MS = 10_000
/** How long a charge is tried before it is left to billing, which resolves the hold when it expires. */
const RESOLVE_TIMEOUT_MS = 60_000
/** Billing resolves a hold that was not renewed for this long: its process is gone. */
export const HOLD_TTL_SECONDS = 45
/** A third of the hold's lifetime, so that two renewals may be lost. */
const RENEW_MS = 15_000

/** Error codes with which billing refuses a hold: nothing was placed. */
const REFUSED: readonly ErrorCode[] = ['insufficient_quota', 'run_limit_exceeded']

/** What a hold is for, and the most and the least that its call may be charged. */
export interface HoldTerms {
  readonly operation: HoldRequest['operation']
  readonly model: Model
  readonly ceiling: Quantities
  /** The usage of the call once its engine works. Billing charges it if only renewals arrive. */
  readonly atLeast: Quantities
  /** Another process continues the call when this one is gone. */
  readonly isContinued?: boolean
}

const NOTHING = toQuantities(0, 0)

/** Money reserved for one call. */
export interface OpenHold {
  readonly id: string
  /**
   * Requests billing's permission again, under the current rules. Called before anything that is not sent at once.
   * @throws {StalePrincipal} the rules of the caller have changed.
   * @throws {KisError} billing refuses or does not respond.
   */
  authorize(): Promise<void>
  /** Reports the usage so far to billing, in the background. A failed report is dropped: the next one includes it. */
  checkpoint(quantities: Quantities): void
  /**
   * Charges the usage and returns the charge in nano-USD, or releases the hold when `usage` is null. Only the first
   * call has an effect; later ones return its outcome.
   * @throws {ServiceUnavailable} billing did not respond for a minute; it resolves the hold itself when that expires.
   */
  resolve(usage: Usage | null): Promise<bigint>
  /** Stops renewing the hold without resolving it, because another call continues with it. */
  stopRenewal(): void
}

/**
 * Reserves the highest possible cost of a call, from the wallet or from the rest of its run's money. Afterwards an
 * engine may be called, and `resolve` must be called. After an error nothing stays held: a hold that may have been
 * placed is voided.
 * @throws {KisError} `insufficient_quota`: the wallet has too little money.
 * @throws {KisError} `run_limit_exceeded`: the run has too little money left.
 * @throws {StalePrincipal} the rules of the caller have changed.
 * @throws {ServiceUnavailable} billing does not respond.
 */
export function openHold(
  deps: HoldDeps,
  context: CallContext,
  { operation, model, ceiling, atLeast, isContinued }: HoldTerms,
): Promise<OpenHold> {
  const { billing, holder } = deps
  const terms = { operation, modelId: model.id, rateCard: model.rateCard, ceiling, ttlSeconds: HOLD_TTL_SECONDS }
  return open(deps, context, atLeast, async (id, opening, placed) => {
    const sentAt = performance.now()
    await billing.placeHold({ id, ...terms, holder: isContinued ? null : holder.id }, opening)
    placed()
    if (!isCurrent(sentAt)) await authorizeHold(deps, id, NOTHING, opening)
  })
}

/**
 * Requests billing's permission to call an engine now. Repeats the request if the response took too long to be current.
 * @throws {StalePrincipal} the rules of the caller have changed.
 * @throws {KisError} billing refuses or does not respond.
 */
export async function authorizeHold(
  { billing }: Pick<Ports, 'billing'>,
  id: string,
  used: Quantities,
  context: BillingContext,
): Promise<void> {
  for (;;) {
    const sentAt = performance.now()
    await billing.dispatchHold(id, used, context)
    if (isCurrent(sentAt)) return
  }
}

/** Reports whether a response is current. The rules may have changed while a slow response was on its way. */
function isCurrent(sentAt: number): boolean {
  return performance.now() - sentAt < CONFIRM_MS / 2
}

/** Money reserved for a run. */
export interface OpenRunHold {
  /** The `runHoldId` of the run's calls. */
  readonly id: string
  /**
   * Releases what the calls have not spent, and returns the sum of their charges, in nano-USD. All calls must have been
   * charged.
   */
  end(): Promise<bigint>
  /** Stops renewing the hold: another process continues the run, or billing releases the rest when the hold expires. */
  stopRenewal(): void
  /**
   * Stops renewing the hold, but leaves it reserved for `seconds`.
   * @throws {KisError} billing did not confirm it.
   */
  reserveFor(seconds: number): Promise<void>
}

/**
 * Reserves the most that a run may spend, in nano-USD. If this process is gone, another continues with the hold.
 * @throws {KisError} as `openHold`.
 */
export async function openRunHold(deps: HoldDeps, context: CallContext, amount: bigint): Promise<OpenRunHold> {
  const hold = await open(deps, context, NOTHING, async (id, opening, placed) => {
    await deps.billing.placeRunHold({ id, amount, ttlSeconds: HOLD_TTL_SECONDS, holder: null }, opening)
    placed()
  })
  return toOpenRunHold(deps, context, hold, amount)
}

/**
 * Takes over the hold of a run whose process is gone. Returns null when the hold has expired or was never placed.
 * @throws {KisError} billing did not respond.
 */
export async function adoptRunHold(deps: HoldDeps, context: CallContext, id: string, amount: bigint): Promise<OpenRunHold | null> {
  try {
    await withDeadline(
      OPEN_TIMEOUT_MS,
      () => new ServiceUnavailable('Billing'),
      context.signal,
      (signal) => deps.billing.checkpointHold(id, NOTHING, HOLD_TTL_SECONDS, { ...context, signal }),
    )
  } catch (error) {
    if (error instanceof KisError && error.code === 'not_found') return null
    throw error
  }
  return toOpenRunHold(deps, context, toOpenHold(deps, context, id, NOTHING), amount)
}

function toOpenRunHold(deps: HoldDeps, context: CallContext, { id, stopRenewal }: OpenHold, amount: bigint): OpenRunHold {
  const end = async () => {
    stopRenewal()
    return amount - (await deps.background.track(detachedWrite(context, (bill) => deps.billing.endRunHold(id, bill))))
  }
  const reserveFor = (seconds: number) => {
    stopRenewal()
    return detachedWrite(context, (bill) => deps.billing.checkpointHold(id, NOTHING, seconds, bill))
  }
  return { id, end, stopRenewal, reserveFor }
}

async function open(
  deps: HoldDeps,
  context: CallContext,
  used: Quantities,
  placeHold: (id: string, context: CallContext, placed: () => void) => Promise<void>,
): Promise<OpenHold> {
  const id = deps.ids('hold')
  await context.record?.holding(id)
  const waited = deps.queue.wait()
  let isPlaced = false
  const placed = () => {
    isPlaced = true
  }
  try {
    await withDeadline(
      OPEN_TIMEOUT_MS,
      () => new ServiceUnavailable('Billing'),
      context.signal,
      async (signal) => {
        await placeHold(id, { ...context, signal }, placed)
        signal.throwIfAborted()
      },
    )
  } catch (error) {
    const isStale = error instanceof StalePrincipal
    if ((isStale && !isPlaced) || (error instanceof KisError && REFUSED.includes(error.code))) {
      context.record?.holdEnded(0n)
      throw error
    }
    const freed = freeQuietly(deps, context, id)
    // The call is repeated. Its record contains one hold at a time, so this one must end first.
    if (isStale) await freed.catch(() => undefined)
    throw error instanceof KisError || context.signal.aborted ? error : new ServiceUnavailable('Billing', { cause: error })
  } finally {
    waited()
  }
  return toOpenHold(deps, context, id, used)
}

/**
 * Returns an open hold that is renewed until it is resolved or its renewal stops. `used` is the usage that the first
 * renewal reports.
 */
export function toOpenHold({ billing, background, log }: HoldDeps, context: CallContext, id: string, used: Quantities): OpenHold {
  let latest: Quantities | undefined
  let known = used
  let isReporting = false
  let outcome: Promise<bigint> | undefined

  /** Reports usage, one write at a time. The next write reports what arrived meanwhile. */
  async function report(): Promise<void> {
    isReporting = true
    while (latest && !outcome) {
      known = latest
      latest = undefined
      const reported = context.record?.isFreeWhenCut ? NOTHING : known
      await detachedWrite(context, (bill) => billing.checkpointHold(id, reported, HOLD_TTL_SECONDS, bill)).catch((error) =>
        log.debug({ err: error, holdId: id }, 'checkpoint lost'),
      )
    }
    isReporting = false
  }

  function checkpoint(quantities: Quantities): void {
    latest = quantities
    if (!isReporting) background.track(report())
  }
  const renewing = renewWhile({
    everyMs: RENEW_MS,
    renew: async () => {
      checkpoint(latest ?? known)
      return true
    },
  })
  const stopRenewal = () => renewing[Symbol.dispose]()

  return {
    id,
    authorize: () => authorizeHold({ billing }, id, NOTHING, context),
    checkpoint,
    stopRenewal,
    resolve(usage) {
      if (outcome) return outcome
      stopRenewal()
      if (usage) context.spent?.(usage)
      outcome = background.track(
        detachedWrite(context, async (bill) =>
          usage ? (await billing.settleHold(id, usage.quantities, usage.source, bill)).charged : billing.voidHold(id, bill),
        ),
      )
      notifyRecord(context, outcome)
      outcome.catch((error) => log.error({ err: error, holdId: id, requestId: context.requestId, usage }, 'hold left to expire'))
      return outcome
    },
  }
}

/** Voids a hold that may have been placed, and returns its charge. */
function freeQuietly({ billing, background, log }: HoldDeps, context: CallContext, id: string): Promise<bigint> {
  const freed = background.track(detachedWrite(context, (bill) => billing.voidHold(id, bill)))
  const charged = freed.catch(neverPlaced)
  notifyRecord(context, charged)
  freed.catch((error) => log.warn({ err: error, holdId: id, requestId: context.requestId }, 'hold left to expire'))
  return charged
}

/** Returns 0 for the error about a hold that billing does not know, because nothing was charged for it. */
export function neverPlaced(error: unknown): bigint {
  if (error instanceof KisError && error.code === 'not_found') return 0n
  throw error
}

function notifyRecord({ record }: CallContext, end: Promise<bigint>): void {
  end.then(
    (charged) => record?.holdEnded(charged),
    () => record?.holdEnded(null),
  )
}

/** Writes for a call with a separate signal, because the write must outlast a caller who disconnects. */
export function detachedWrite<T>(context: CallContext, write: (context: BillingContext) => Promise<T>): Promise<T> {
  return withDeadline(
    RESOLVE_TIMEOUT_MS,
    () => new ServiceUnavailable('Billing', { shouldRetry: false }),
    null,
    (signal) => write({ ...context, signal }),
  )
}
