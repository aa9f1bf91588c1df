import { isAbsent } from '../../../common/check.ts'
import { KisError } from '../../../common/errors.ts'
import type { RequestContext } from '../deps.ts'
import { followed } from '../runs/followed.ts'
import type { FollowedEvent } from '../runs/run-log.ts'
import type { RunRecord } from '../tables.ts'
import type { AgentRuns, RunInput } from './agent-runs.ts'

/**
 * Runs an agent and returns the ended run: completed, or cancelled by another caller. If the caller disconnects, the
 * run is cancelled, unless a repeat can find it by its idempotency key.
 * @throws {KisError} the code of the run's error, when the run failed; the message names the run.
 * @throws {KisError} `service_unavailable`: this process stops and another continues the run.
 */
export async function runAgent(
  runs: AgentRuns,
  requestContext: RequestContext,
  input: RunInput,
): Promise<RunRecord & { readonly isReplayed: boolean }> {
  const { run, isReplayed } = await runs.start(requestContext, input)
  const onAbort = () => {
    if (isAbsent(input.idempotencyKey)) runs.cancel(requestContext, run._id).catch(() => undefined)
  }
  requestContext.signal.addEventListener('abort', onAbort, { once: true })
  if (requestContext.signal.aborted) onAbort()
  const last = await runs.ended(requestContext, run)
  requestContext.signal.removeEventListener('abort', onAbort)
  if (last.error || last.status === 'running') throw toRunFailure(last)
  return { ...last, isReplayed }
}

/** Starts a run of an agent and follows it. */
export function startAndFollow(
  runs: AgentRuns,
  requestContext: RequestContext,
  input: RunInput,
): AsyncIterableIterator<FollowedEvent, undefined> {
  return followed(runs, requestContext, async () => ({
    ...(await runs.start(requestContext, input)).run,
    isFound: !isAbsent(input.idempotencyKey),
  }))
}

/** The error for a caller whose process stops while another process continues the run. */
const IN_PROGRESS = { code: 'service_unavailable', message: 'The run is still in progress. Get it by its id.' } as const

/** Returns the error of a run as the error of the call that waited for it. The message names the run. */
export function toRunFailure({ _id, error }: Pick<RunRecord, '_id' | 'error'>): KisError {
  const { code, message } = error ?? IN_PROGRESS
  return new KisError(code, `${message} (The run is \`${_id}\`.)`)
}
