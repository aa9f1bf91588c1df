/** Requests of one delivery: with the waits below, over at most three and a half days, and some 43 hours on the average. */
export const MAX_TRIES = 10
/** The longest wait after the first failure, in units of the configured first step, whose default is a second: 5 s, as Standard Webhooks proposes. */
const FIRST_STEPS = 5
const FACTOR = 6
const MAX_WAIT_MS = 24 * 3_600_000

/** Wait before the next request after so many that failed; null: there is none. `random`: 0 to 1, for full jitter. */
export function retryWaitMs(failures: number, firstStepMs: number, retryAfterMs: number | null, random: number): number | null {
  if (failures >= MAX_TRIES) return null
  const jittered = random * Math.min(firstStepMs * FIRST_STEPS * FACTOR ** (failures - 1), MAX_WAIT_MS)
  return Math.min(Math.max(jittered, retryAfterMs ?? 0), MAX_WAIT_MS)
}
