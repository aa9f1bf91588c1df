import { useEffect, useRef } from 'react'
import type { Answer } from '../../data/answer.ts'

/** Asks again each `everyMs` while the page is visible. */
export function usePolling(answer: Answer<unknown>, everyMs: number): void {
  const latest = useRef(answer)
  latest.current = answer
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState !== 'visible') return
      const now = latest.current
      if (now.state === 'ready') now.refresh()
      if (now.state === 'failed') now.retry()
    }, everyMs)
    return () => clearInterval(timer)
  }, [everyMs])
}
