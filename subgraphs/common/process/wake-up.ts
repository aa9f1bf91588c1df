/** Lets workers sleep until there may be work. */
export interface WakeUp {
  wake(): void
  /** Resolves after `ms`, at the next `wake()`, or when the signal aborts. A `wake()` since the last wait counts. */
  wait(ms: number, signal: AbortSignal): Promise<void>
}

/** Creates a wake-up without sleepers. */
export function wakeUp(): WakeUp {
  const sleepers = new Set<() => void>()
  let missed = false
  return {
    wake() {
      if (sleepers.size === 0) missed = true
      for (const resume of sleepers) resume()
    },
    async wait(ms, signal) {
      if (missed || signal.aborted) {
        missed = false
        return
      }
      await new Promise<void>((resolve) => {
        const resume = () => {
          clearTimeout(timer)
          signal.removeEventListener('abort', resume)
          sleepers.delete(resume)
          resolve()
        }
        const timer = setTimeout(resume, ms)
        signal.addEventListener('abort', resume, { once: true })
        sleepers.add(resume)
      })
    },
  }
}
