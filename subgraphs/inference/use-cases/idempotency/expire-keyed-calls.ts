import type { Task } from '../../../common/process/tasks.ts'
import type { With } from '../deps.ts'

/** Pause between two removals. An expired key can be used again at once; its record may stay for this long. */
const SWEEP_INTERVAL_MS = 60_000

/** Removes the records of expired idempotency keys. */
export function keyedCallsSweep({ keyedCalls }: Pick<With<'keyedCalls'>, 'keyedCalls'>): Task {
  const run = async (signal: AbortSignal) => {
    while ((await keyedCalls.removeExpired()) > 0) signal.throwIfAborted()
  }
  return { name: 'sweep_keyed_calls', everyMs: SWEEP_INTERVAL_MS, isShared: true, run }
}
