import { useCallback, useEffect, useRef } from 'react'
import { connection } from './connection.ts'
import type { QueryResult } from './query-result.ts'

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

/** After failures the next question comes later, up to this. */
const MAX_PAUSE_MS = 60_000

/**
 * Asks again every `everyMs`, for what no subscription tells. It asks nothing while nobody looks at the page or the
 * connection is lost, and after failures each time later. A page that comes back into view asks at once if it is time.
 */
export function useRepeat(result: QueryResult<unknown>, everyMs: number, isOn = true): void {
  const latest = useRef(result)
  latest.current = result
  // A failure does not say whether there is still something to ask for.
  const wasOn = useRef(isOn)
  if (result.state === 'ready') wasOn.current = isOn
  const goesOn = wasOn.current
  useEffect(() => {
    if (!goesOn) return
    let pauseMs = everyMs
    let polledAt = performance.now()
    let timer: ReturnType<typeof setTimeout> | undefined
    const plan = () => {
      clearTimeout(timer)
      if (document.visibilityState === 'visible') timer = setTimeout(poll, Math.max(polledAt + pauseMs - performance.now(), 0))
    }
    const poll = () => {
      const now = latest.current
      polledAt = performance.now()
      pauseMs = now.state === 'failed' ? Math.min(pauseMs * 2, MAX_PAUSE_MS) : everyMs
      if (connection.state === 'connected') {
        if (now.state === 'ready' && !now.isRefreshing) now.refresh()
        if (now.state === 'failed') now.retry()
      }
      plan()
    }
    plan()
    document.addEventListener('visibilitychange', plan)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', plan)
    }
  }, [everyMs, goesOn])
}
