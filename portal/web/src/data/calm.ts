import { useCallback, useEffect, useRef } from 'react'

/** Calls `act` at most once in `pauseMs`, however often it is asked to, and once more after the last time. */
export function useCalm(act: () => void, pauseMs: number): () => void {
  const latest = useRef(act)
  latest.current = act
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  return useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      latest.current()
    }, pauseMs)
  }, [pauseMs])
}

/** Calls `act` every `everyMs` while somebody looks at the page. Null: there is nothing to do. */
export function useRepeat(act: (() => void) | null, everyMs: number): void {
  const latest = useRef(act)
  latest.current = act
  const isOn = act !== null
  useEffect(() => {
    if (!isOn) return
    const timer = setInterval(() => document.visibilityState === 'visible' && latest.current?.(), everyMs)
    return () => clearInterval(timer)
  }, [isOn, everyMs])
}
