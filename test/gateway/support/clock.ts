import type { Clock } from '../../../subgraphs/common/process/clock.ts'

/** A clock that stands still until it is moved. */
export function handClock(): Clock & { advance(ms: number): void } {
  let nowMs = Date.UTC(2026, 0, 1)
  const sleepers = new Set<{ readonly until: number; readonly wake: () => void }>()
  return {
    now: () => new Date(nowMs),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted()
        const sleeper = { until: nowMs + ms, wake: resolve }
        sleepers.add(sleeper)
        signal?.addEventListener('abort', () => {
          sleepers.delete(sleeper)
          reject(signal.reason)
        })
      }),
    advance(ms) {
      nowMs += ms
      for (const sleeper of sleepers) {
        if (sleeper.until > nowMs) continue
        sleepers.delete(sleeper)
        sleeper.wake()
      }
    },
  }
}
