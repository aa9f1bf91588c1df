import { systemClock } from '../subgraphs/common/process/clock.ts'

/** How often it checks again. */
const POLL_MS = 250

/**
 * Resolves when there are no problems left. `say` gets what it waits for, whenever that changes. Rejects as soon as one of
 * `opened` does: waiting cannot help then.
 */
export async function untilOpen(
  opened: readonly Promise<unknown>[],
  problems: () => Promise<readonly string[]>,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const failed = Promise.withResolvers<never>()
  for (const each of opened) each.catch(failed.reject)
  for (let reported = ''; ; ) {
    const found = await Promise.race([problems(), failed.promise])
    signal.throwIfAborted()
    if (found.length === 0) return
    const waiting = `waiting for ${[...new Set(found)].join('; ')}`
    if (waiting !== reported) say(waiting)
    reported = waiting
    await Promise.race([systemClock.sleep(POLL_MS, signal), failed.promise])
  }
}
