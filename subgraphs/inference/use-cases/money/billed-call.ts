import { StoppedByLimit } from '../../domain/engines/engine-failure.ts'
import type { Usage } from '../../domain/tokens/usage.ts'
import { NeverSent } from '../../ports/engines.ts'
import { withDeadline } from '../deadline.ts'
import type { CallContext, HoldDeps } from '../deps.ts'
import { type HoldTerms, type OpenHold, openHold } from './hold.ts'

/** The result of finished work, and the usage to charge for it. */
interface Work<Value> {
  /** The whole answer without its cost. */
  readonly value: Value
  readonly usage: Usage
}

/** Longest time of a model call. Links between services have the same limit. */
export const MAX_CALL_MS = 900_000

export function callTookTooLong(): StoppedByLimit {
  return new StoppedByLimit('engine_timeout', `The model took longer than ${MAX_CALL_MS / 1_000} s.`)
}

/**
 * Holds money, does the work and charges for it. The answer comes after the charge. A failed call is free. If the
 * caller leaves before the end, or a limit or a deadline of ours ends the call, the engine is stopped but bills for its
 * work so far, so `whenStopped()` is charged. Work that fails with `NeverAsked` is free. The work may take `maxMs`
 * milliseconds.
 * @throws {KisError} as `openHold`: no money could be held, and no work was done.
 * @throws {StoppedByLimit} `engine_timeout`: the work took longer than `maxMs`.
 * @throws the error of the work.
 */
export async function billedCall<Value extends object>(
  deps: HoldDeps,
  context: CallContext,
  terms: HoldTerms,
  whenStopped: (error: unknown) => Usage,
  work: (signal: AbortSignal, authorize: OpenHold['authorize']) => Promise<Work<Value>>,
  maxMs: number = MAX_CALL_MS,
): Promise<Value & { readonly cost: bigint }> {
  const hold = await openHold(deps, context, terms)
  let done: Work<Value>
  try {
    done = await withDeadline(maxMs, callTookTooLong, context.signal, (signal) => work(signal, hold.authorize))
    await context.record?.completed(done.usage, done.value)
  } catch (error) {
    // The caller gets the error of the work even if resolving the hold fails.
    const wasSent = !(error instanceof NeverSent)
    const isStopped = error instanceof StoppedByLimit
    const isCharged = wasSent && (isStopped || (context.signal.aborted && !context.record?.isFreeWhenCut))
    const charged = await hold.resolve(isCharged ? whenStopped(error) : null).catch(() => 0n)
    if (isStopped) error.charged = charged
    throw wasSent ? error : error.cause
  }
  return { ...done.value, cost: await hold.resolve(done.usage) }
}
