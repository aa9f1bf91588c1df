import { useEffect } from 'react'

/** Asks again while something moves that no subscription tells of, and the page can be seen. */
export function usePolling(isOn: boolean, ask: (() => void) | null, ms: number): void {
  useEffect(() => {
    if (!isOn || !ask) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') ask()
    }, ms)
    return () => clearInterval(timer)
  }, [isOn, ask, ms])
}
