import type { Answer } from '../../data/answer.ts'
import { useRepeat } from '../../data/calm.ts'

/** Asks again each `everyMs`, also after a failure. */
export function useAskingAgain(answer: Answer<unknown>, everyMs: number): void {
  useRepeat(() => {
    if (answer.state === 'ready') answer.refresh()
    if (answer.state === 'failed') answer.retry()
  }, everyMs)
}
