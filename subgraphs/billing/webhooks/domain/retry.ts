/**
 * Requests of one delivery. With the waits below they take at most three and a half days, and about 43 hours on
 * average.
 */
export const MAX_TRIES = 10
/**
 * Longest wait after the first failure, in units of the configured first step (default: 1 s). 5 s, as Standard Webhooks
 * proposes.
 */
const FIRST_STEPS = 5
const FACTOR = 6
const MAX_WAIT_MS = 24 * 3_600_000

/**
 * Returns the wait before the next request after this many failed ones, in milliseconds; null: there is no next
 * request. `random`: 0 to 1, for full jitter.
 */
export function retryWaitMs(failures: number, firstStepMs: number, retryAfterMs: number | null, random: number): number | null {
  if (failures >= MAX_TRIES) return null
  const jittered = random * Math.min(firstStepMs * FIRST_STEPS * FACTOR ** (failures - 1), MAX_WAIT_MS)
  return Math.min(Math.max(jittered, retryAfterMs ?? 0), MAX_WAIT_MS)
}
