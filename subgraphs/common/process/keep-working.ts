import type { Clock } from './clock.ts'

export interface Rounds {
  readonly clock: Clock
  /** Pause between two rounds. `failures`: how many rounds in a row have failed. */
  readonly pauseMs: number | ((failures: number) => number)
  /** Called for each failed round, unless the abort ended it. */
  failed(error: unknown, failures: number): void
}

/** Works in rounds, with a pause after each, until the signal aborts. A failed round does not end it. Never rejects. */
export async function keepWorking(round: () => unknown, { clock, pauseMs, failed }: Rounds, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    try {
      await round()
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      failures++
      failed(error, failures)
    }
    await clock.sleep(typeof pauseMs === 'number' ? pauseMs : pauseMs(failures), signal).catch(() => undefined)
  }
}
