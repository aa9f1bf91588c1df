import { useCallback, useEffect, useRef } from 'react'
import { connection } from './connection.ts'
import type { QueryResult } from './query-result.ts'

/**
 * Returns a throttled `act`: however often it is called, it runs at most once in `pauseMs`, and once more after the
 * last call.
 */
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

/** Longest pause between two queries after failures. */
const MAX_PAUSE_MS = 60_000

/**
 * Repeats a query every `everyMs`, for changes that no subscription reports. It pauses while the page is hidden or the
 * connection is lost, and waits longer after each failure. A page that becomes visible again repeats the query at once
 * if it is due.
 */
export function useRepeat(result: QueryResult<unknown>, everyMs: number, isOn = true): void {
  const latest = useRef(result)
  latest.current = result
  // A failed query does not show whether repeating is still needed.
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
