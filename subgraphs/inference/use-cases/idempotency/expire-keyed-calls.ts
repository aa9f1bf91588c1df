import { keepWorking } from '../../../common/process/keep-working.ts'
import type { With } from '../deps.ts'

/** A key whose time is over is free at once; this is how long its record may still take room. */
const SWEEP_INTERVAL_MS = 60_000

/**
 * Removes the records of idempotency keys whose time is over, until the signal aborts. Several processes may do it at
 * once.
 */
export async function keepExpiringKeyedCalls({ keyedCalls, clock, log }: With<'keyedCalls'>, signal: AbortSignal): Promise<void> {
  const round = async () => {
    while ((await keyedCalls.removeExpired()) > 0) signal.throwIfAborted()
  }
  const failed = (error: unknown) => log.warn({ err: error }, 'idempotency keys whose time is over are still kept')
  await keepWorking(round, { clock, pauseMs: SWEEP_INTERVAL_MS, failed }, signal)
}
