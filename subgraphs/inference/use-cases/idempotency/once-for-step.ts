import type { CallContext, KeyedDeps } from '../deps.ts'
import type { StepClaim } from './keyed-calls.ts'
import { toError } from './keyed-outcome.ts'
import { KeyedRun } from './keyed-run.ts'

/**
 * Makes a call that is a step of a run, or gives the answer that it had when the run was here before: whatever process
 * runs it, and however often one is killed, its engine's answer is charged once.
 * @throws {KisError} what the call fails with; it is made again unless it was charged. `idempotency_conflict`: it is
 * under way elsewhere, or was until a moment ago.
 */
export async function onceForStep<Value extends { readonly cost: bigint }>(
  deps: KeyedDeps,
  context: CallContext,
  claim: StepClaim,
  work: (context: CallContext & { readonly record: KeyedRun }) => Promise<Value>,
): Promise<Value> {
  const record = await deps.keyedCalls.claimStep(context, claim)
  if (!(record instanceof KeyedRun)) {
    if (record.outcome.failure) throw toError(record.outcome.failure)
    return { ...(record.outcome.value as Value), cost: record.cost }
  }
  try {
    const value = await work({ ...context, record })
    await record.end(value.cost)
    return value
  } catch (error) {
    await record.fail(error)
    throw error
  }
}
