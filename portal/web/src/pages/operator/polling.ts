import type { Answer } from '../../data/answer.ts'
import { usePolling } from '../../data/polling.ts'

/** Asks again each `everyMs`, also after a failure. */
export function useAskingAgain(answer: Answer<unknown>, everyMs: number): void {
  usePolling(() => {
    if (answer.state === 'ready') answer.refresh()
    if (answer.state === 'failed') answer.retry()
  }, everyMs)
}
