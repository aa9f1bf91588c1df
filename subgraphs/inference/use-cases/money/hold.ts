import type { ErrorCode } from '../../../../schema/errors.ts'
import { KisError, ServiceUnavailable, StalePrincipal } from '../../../common/errors.ts'
import { LET_BEGIN_MS } from '../../../common/identity/principal.ts'
import type { Model } from '../../domain/catalog.ts'
import { toQuantities, type Usage } from '../../domain/tokens/usage.ts'
import type { BillingContext, HoldRequest, Quantities } from '../../ports/billing.ts'
import { withDeadline } from '../deadline.ts'
import type { CallContext, HoldDeps, Ports } from '../deps.ts'

/** Placing and dispatching are one write of the store each. */
const OPEN_TIMEOUT_MS = 10_000
/** How long a charge is repeated before it is left to billing, which resolves the hold when it expires. */
const RESOLVE_TIMEOUT_MS = 60_000
/** A hold whose process says nothing for this long is resolved by billing: that process is gone. */
export const HOLD_TTL_SECONDS = 45
/** A third of it, so that two renewals may be lost. */
const RENEW_MS = 15_000

/** Billing's answers that say that nothing was placed. */
const REFUSED: readonly ErrorCode[] = ['insufficient_quota', 'run_limit_exceeded']

export interface HoldTerms {
  readonly operation: HoldRequest['operation']
  readonly model: Model
  readonly ceiling: Quantities
  /** What the call has used as soon as its engine works. Billing charges it when nothing but renewals arrive. */
  readonly atLeast: Quantities
  /** Another process goes on with the call when this one is gone. */
  readonly goesOn?: boolean
}

const NOTHING = toQuantities(0, 0)

/** Money reserved for one call, whose dispatch billing has acknowledged. */
export interface OpenHold {
  readonly id: string
  /** Tells billing in the background how far the call is. One that fails is lost: the next says more. */
  checkpoint(quantities: Quantities): void
  /**
   * Charges the usage, or frees the hold when there is none. The first call decides; later ones give its outcome.
   * @throws {ServiceUnavailable} billing did not answer for a minute; it resolves the hold itself when that expires.
   */
  resolve(usage: Usage | null): Promise<bigint>
  /** Stops renewing the hold here, without resolving it: another call goes on with it. */
  leave(): void
}

/**
 * Reserves a call's worst case, in the wallet or in what its run may still spend. Once it resolves, an engine may be
 * called and `resolve` must be.
 * @throws {KisError} nothing stays held: what may have been placed is voided.
 */
export function openHold(
  deps: HoldDeps,
  context: CallContext,
  { operation, model, ceiling, atLeast, goesOn }: HoldTerms,
): Promise<OpenHold> {
  const { billing, holder } = deps
  const terms = { operation, modelId: model.id, rateCard: model.rateCard, ceiling, ttlSeconds: HOLD_TTL_SECONDS }
  return open(deps, context, atLeast, async (id, opening, placed) => {
    await billing.placeHold({ id, ...terms, holder: goesOn ? null : holder.id }, opening)
    placed()
    // A crash before the first checkpoint costs nothing.
    await letBegin(deps, id, NOTHING, opening)
  })
}

/**
 * Has billing say that an engine may be called, at once.
 * @throws {StalePrincipal} not by these rules.
 * @throws {KisError}
 */
export async function letBegin({ billing }: Pick<Ports, 'billing'>, id: string, used: Quantities, context: BillingContext): Promise<void> {
  for (;;) {
    const askedAt = performance.now()
    await billing.dispatchHold(id, used, context)
    // An answer that took longer may be older than a change of the rules that has been answered since.
    if (performance.now() - askedAt < LET_BEGIN_MS / 2) return
  }
}

/** Money reserved for a run. */
export interface OpenRunHold {
  /** To be the `runHoldId` of its calls. */
  readonly id: string
  /**
   * Frees what the calls have left, and gives what they were charged in all, in nano-USD. The calls must have been
   * charged.
   */
  end(): Promise<bigint>
  /** Stops renewing it: another process goes on with the run, or billing frees the rest when it expires. */
  leave(): void
  /** Leaves it too, but it stays reserved for so long. @throws {KisError} billing did not say that it does. */
  leaveFor(seconds: number): Promise<void>
}

/**
 * Reserves the most that a run may spend, in nano-USD. Another process goes on with it when this one is gone.
 * @throws as `openHold`.
 */
export async function openRunHold(deps: HoldDeps, context: CallContext, amount: bigint): Promise<OpenRunHold> {
  const hold = await open(deps, context, NOTHING, async (id, opening, placed) => {
    await deps.billing.placeRunHold({ id, amount, ttlSeconds: HOLD_TTL_SECONDS, holder: null }, opening)
    placed()
  })
  return toOpenRunHold(deps, context, hold, amount)
}

/**
 * Goes on with the hold of a run whose process is gone. Null: it has expired, or was never placed.
 * @throws {KisError} billing did not say.
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

function toOpenRunHold(deps: HoldDeps, context: CallContext, { id, leave }: OpenHold, amount: bigint): OpenRunHold {
  const end = async () => {
    leave()
    return amount - (await deps.background.track(lasting(context, (bill) => deps.billing.endRunHold(id, bill))))
  }
  const leaveFor = (seconds: number) => {
    leave()
    return lasting(context, (bill) => deps.billing.checkpointHold(id, NOTHING, seconds, bill))
  }
  return { id, end, leave, leaveFor }
}

async function open(
  deps: HoldDeps,
  context: CallContext,
  used: Quantities,
  place: (id: string, context: CallContext, placed: () => void) => Promise<void>,
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
        await place(id, { ...context, signal }, placed)
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
    // The call is made again: its record knows one hold at a time.
    if (isStale) await freed.catch(() => undefined)
    throw error instanceof KisError || context.signal.aborted ? error : new ServiceUnavailable('Billing', { cause: error })
  } finally {
    waited()
  }
  return toOpenHold(deps, context, id, used)
}

/**
 * An open hold, dispatched where it is a call's, renewed until it is resolved or left; `used` is what the first renewal
 * tells of it.
 */
export function toOpenHold({ billing, background, log }: HoldDeps, context: CallContext, id: string, used: Quantities): OpenHold {
  let latest: Quantities | undefined
  let known = used
  let isTelling = false
  let outcome: Promise<bigint> | undefined

  /** One write at a time; what came meanwhile is told by the next. */
  async function tell(): Promise<void> {
    isTelling = true
    while (latest && !outcome) {
      known = latest
      latest = undefined
      const told = context.record?.isFreeWhenCut ? NOTHING : known
      await lasting(context, (bill) => billing.checkpointHold(id, told, HOLD_TTL_SECONDS, bill)).catch((error) =>
        log.debug({ err: error, holdId: id }, 'checkpoint lost'),
      )
    }
    isTelling = false
  }

  function checkpoint(quantities: Quantities): void {
    latest = quantities
    if (!isTelling) background.track(tell())
  }
  const renewing = setInterval(() => checkpoint(latest ?? known), RENEW_MS)
  renewing.unref()
  const leave = () => clearInterval(renewing)

  return {
    id,
    checkpoint,
    leave,
    resolve(usage) {
      if (outcome) return outcome
      leave()
      if (usage) context.spent?.(usage)
      outcome = background.track(
        lasting(context, async (bill) =>
          usage ? (await billing.settleHold(id, usage.quantities, usage.source, bill)).charged : billing.voidHold(id, bill),
        ),
      )
      tellRecord(context, outcome)
      outcome.catch((error) => log.error({ err: error, holdId: id, requestId: context.requestId, usage }, 'hold left to expire'))
      return outcome
    },
  }
}

/** Gives what was charged for what may have been placed. */
function freeQuietly({ billing, background, log }: HoldDeps, context: CallContext, id: string): Promise<bigint> {
  const freed = background.track(lasting(context, (bill) => billing.voidHold(id, bill)))
  const charged = freed.catch(neverPlaced)
  tellRecord(context, charged)
  freed.catch((error) => log.warn({ err: error, holdId: id, requestId: context.requestId }, 'hold left to expire'))
  return charged
}

/** Nothing was charged for a hold that billing does not know. */
export function neverPlaced(error: unknown): bigint {
  if (error instanceof KisError && error.code === 'not_found') return 0n
  throw error
}

function tellRecord({ record }: CallContext, end: Promise<bigint>): void {
  end.then(
    (charged) => record?.holdEnded(charged),
    () => record?.holdEnded(null),
  )
}

/** The caller may have left; what is written for the call outlives that. */
export function lasting<T>(context: CallContext, write: (context: BillingContext) => Promise<T>): Promise<T> {
  return withDeadline(
    RESOLVE_TIMEOUT_MS,
    () => new ServiceUnavailable('Billing', { shouldRetry: false }),
    null,
    (signal) => write({ ...context, signal }),
  )
}
