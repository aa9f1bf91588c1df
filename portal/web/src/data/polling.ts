import { useEffect, useRef } from 'react'

/** Asks again each `everyMs` while the page can be seen. Null: there is nothing to ask for. */
export function usePolling(ask: (() => void) | null, everyMs: number): void {
  const latest = useRef(ask)
  latest.current = ask
  const isOn = ask !== null
  useEffect(() => {
    if (!isOn) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') latest.current?.()
    }, everyMs)
    return () => clearInterval(timer)
  }, [isOn, everyMs])
}
