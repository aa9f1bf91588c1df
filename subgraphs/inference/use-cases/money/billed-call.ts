import { KisError } from '../../../common/errors.ts'
import type { Usage } from '../../domain/tokens/usage.ts'
import { withDeadline } from '../deadline.ts'
import type { CallContext, HoldDeps } from '../deps.ts'
import { type HoldTerms, openHold } from './hold.ts'

/** A finished piece of work and what to charge for it. */
export interface Work<Value> {
  /** The answer, whole but for its cost. */
  readonly value: Value
  readonly usage: Usage
}

/** The longest that a call of a model may take; links between services end at the same time. */
export const MAX_CALL_MS = 900_000

export function callTookTooLong(): KisError {
  return new KisError('engine_timeout', `The model took longer than ${MAX_CALL_MS / 1_000} s.`)
}

/**
 * Holds, works, charges; the answer comes after the charge. A failed call costs nothing. `whenGone` says what was used
 * when the caller has left before the end: the engine was ended, but bills what it has done. The work may take `maxMs`.
 */
export async function billedCall<Value extends object>(
  deps: HoldDeps,
  context: CallContext,
  terms: HoldTerms,
  whenGone: () => Usage,
  work: (signal: AbortSignal) => Promise<Work<Value>>,
  maxMs: number = MAX_CALL_MS,
): Promise<Value & { readonly cost: bigint }> {
  const hold = await openHold(deps, context, terms)
  let done: Work<Value>
  try {
    done = await withDeadline(maxMs, callTookTooLong, context.signal, work)
    await context.record?.answered(done.usage, done.value)
  } catch (error) {
    // Whatever comes of it, the caller is told why the work failed.
    const isCharged = context.signal.aborted && !context.record?.isFreeWhenCut
    await hold.resolve(isCharged ? whenGone() : null).catch(() => undefined)
    throw error
  }
  return { ...done.value, cost: await hold.resolve(done.usage) }
}
