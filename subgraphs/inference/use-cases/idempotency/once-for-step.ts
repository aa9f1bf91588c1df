import { requirePrincipal } from '../../../common/identity/principal.ts'
import type { CallContext, KeyedDeps, RequestContext } from '../deps.ts'
import type { StepClaim } from './keyed-calls.ts'
import { toError, unpackResponse } from './keyed-outcome.ts'
import { KeyedRun } from './keyed-run.ts'

/**
 * Makes a call that is a step of a run, or returns its answer from an earlier pass of the run. The engine's answer is
 * charged once, whichever process makes the call and however often one is killed. `cost` includes what earlier passes
 * were charged for attempts that a limit or a deadline of ours has ended.
 * @throws {KisError} the error of the call; the next pass makes the call again unless it was charged.
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
 * As `onceForStep`, for a step that another service asks for, as `run/path`. The call continues when that service
 * leaves: its engine bills it, and only the service knows whether the run was cancelled or another process continues
 * it. So the call is charged, and the next pass gets its answer. When this process stops, the call is cut and free.
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
