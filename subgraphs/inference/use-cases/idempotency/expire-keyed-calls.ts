import { keepWorking } from '../../../common/process/keep-working.ts'
import type { With } from '../deps.ts'

/** Pause between two removals. An expired key can be used again at once; its record may stay for this long. */
const SWEEP_INTERVAL_MS = 60_000

/** Removes the records of expired idempotency keys until the signal aborts. Several processes may do it at once. */
export async function keepExpiringKeyedCalls({ keyedCalls, clock, log }: With<'keyedCalls'>, signal: AbortSignal): Promise<void> {
  const round = async () => {
    while ((await keyedCalls.removeExpired()) > 0) signal.throwIfAborted()
  }
  const failed = (error: unknown) => log.warn({ err: error }, 'idempotency keys whose time is over are still kept')
  await keepWorking(round, { clock, pauseMs: SWEEP_INTERVAL_MS, failed }, signal)
}
