import { KisError } from '../../../common/errors.ts'
import type { CallContext, KeyedDeps } from '../deps.ts'
import { adoptRunHold, detachedWrite, neverPlaced, type OpenRunHold, openRunHold } from '../money/hold.ts'
import type { RunBase } from '../tables.ts'

/** Longest time that the calls of a run may take to end after the run; their charges are tried for a minute. */
const MAX_SETTLING_MS = 120_000
const SETTLING_POLL_MS = 100
/** How much longer than the run the hold of a waiting run lasts, so that the process that ends the run finds it. */
const LATE_HOLD_SECONDS = 60

type MoneyDeps = KeyedDeps

/**
 * Takes over the hold of the process that had the run before, or reserves the rest of what the run may cost. `write`
 * records the new hold in the run.
 * @throws {KisError} as `adoptRunHold`, `openRunHold` and `chargesOfRun`.
 */
export async function reserveAgain(
  deps: MoneyDeps,
  run: RunBase,
  context: CallContext,
  write: (fields: { readonly holdId: string; readonly holdAmount: string }) => Promise<void>,
): Promise<OpenRunHold> {
  const charged = sumCharges(await chargesOfRun(deps, run, context))
  const adopted = await adoptRunHold(deps, context, run.holdId, BigInt(run.holdAmount))
  if (adopted) return adopted
  const amount = BigInt(run.maxCost) - charged
  return reserve(deps, context, amount, (holdId) => write({ holdId, holdAmount: String(amount) }))
}

/** @param holding records the hold's id before the hold is placed. */
function reserve(deps: MoneyDeps, context: CallContext, amount: bigint, holding: (holdId: string) => Promise<void>): Promise<OpenRunHold> {
  const record = { isFreeWhenCut: true, holding, holdEnded: () => undefined, completed: async () => undefined }
  return openRunHold(deps, { ...context, record }, amount)
}

/**
 * Waits until all calls of the run have ended. Returns their charges in nano-USD, by the first part of their paths.
 * @throws {KisError} `idempotency_conflict`: a call has not ended after two minutes.
 * @throws the reason of the signal, when it is aborted.
 */
export async function chargesOfRun(deps: MoneyDeps, { _id }: RunBase, context: CallContext): Promise<ReadonlyMap<string, bigint>> {
  for (let waitedMs = 0; ; waitedMs += SETTLING_POLL_MS) {
    try {
      return await deps.keyedCalls.listCharges(context, _id)
    } catch (error) {
      if (!(error instanceof KisError) || error.code !== 'idempotency_conflict' || waitedMs >= MAX_SETTLING_MS) throw error
    }
    await deps.clock.sleep(SETTLING_POLL_MS, context.signal)
  }
}

/** Releases the money that the run has left. `hold` is null when this process does not have the run's hold. */
export async function freeRest(deps: MoneyDeps, run: RunBase, hold: OpenRunHold | null, context: CallContext): Promise<void> {
  const ended = hold ? hold.end() : detachedWrite(context, (bill) => deps.billing.endRunHold(run.holdId, bill))
  await ended.catch(neverPlaced)
}

/** Keeps the run's money reserved for as long as the run may wait. */
export function reserveWhileWaiting({ background, clock, log }: MoneyDeps, { _id, deadline }: RunBase, hold: OpenRunHold): void {
  const seconds = Math.ceil((deadline.getTime() - clock.now().getTime()) / 1_000) + LATE_HOLD_SECONDS
  background
    .track(hold.reserveFor(Math.max(LATE_HOLD_SECONDS, seconds)))
    // The process that continues the run then reserves the money again.
    .catch((error) => log.warn({ err: error, runId: _id }, 'the hold of a waiting run expires'))
}

export function sumCharges(charges: ReadonlyMap<string, bigint>): bigint {
  return [...charges.values()].reduce((sum, cost) => sum + cost, 0n)
}
