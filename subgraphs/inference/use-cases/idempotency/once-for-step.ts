import { requirePrincipal } from '../../../common/identity/principal.ts'
import type { CallContext, KeyedDeps, RequestContext } from '../deps.ts'
import type { StepClaim } from './keyed-calls.ts'
import { toError, unpackResponse } from './keyed-outcome.ts'
import { KeyedRun } from './keyed-run.ts'

/**
 * Runs a call that is a step of a run, or returns its result from an earlier attempt at the run. The engine's response
 * is charged once, whichever process runs the call and however often a process is killed. `cost` includes the charges
 * of earlier attempts that a limit or a deadline of the service ended.
 * @throws {KisError} the error of the call; the next attempt repeats the call unless it was charged.
 * @throws {KisError} `idempotency_conflict`: the call is in progress in another process, or was until a moment ago.
 */
export async function onceForStep<Value extends { readonly cost: bigint }>(
  deps: KeyedDeps,
  context: CallContext,
  claim: StepClaim,
  work: (context: CallContext & { readonly record: KeyedRun }) => Promise<Value>,
): Promise<Value> {
  const record = await deps.keyedCalls.claimStep(context, claim)
  if (!(record instanceof KeyedRun)) {
    const { failure, value, response } = record.outcome
    if (failure) throw toError(failure)
    return { ...(value as Value), ...(response && { response: await unpackResponse(response) }), cost: record.cost }
  }
  const chargedBefore = record.charged
  try {
    const value = await work({ ...context, record })
    const cost = chargedBefore + value.cost
    await record.end(cost)
    return { ...value, cost }
  } catch (error) {
    await record.fail(error)
    throw error
  }
}

/**
 * Does what `onceForStep` does, for a step that another service requests as `run/path`. The call continues when that
 * service disconnects: the engine bills it, and only that service knows whether the run was cancelled or another
 * process continues it. So the call is charged, and the next attempt gets its result. When this process stops, the call
 * is interrupted and free.
 * @throws {KisError} as `onceForStep`.
 */
export async function onceForStepOf<Value extends { readonly cost: bigint }>(
  deps: KeyedDeps,
  requestContext: RequestContext,
  step: string,
  work: (context: CallContext & { readonly record: KeyedRun }) => Promise<Value>,
): Promise<Value> {
  requestContext.signal.throwIfAborted()
  const [runId = '', ...path] = step.split('/')
  const context = { ...requestContext, caller: requirePrincipal(requestContext.caller), signal: deps.keyedCalls.signal }
  return deps.background.track(onceForStep(deps, context, { runId, path: path.join('/'), isFree: () => true }, work))
}
