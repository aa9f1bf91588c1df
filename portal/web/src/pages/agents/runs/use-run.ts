import { useReducer } from 'react'
import { useClient } from 'urql'
import { type Failure, toFailure } from '../../../data/failure.ts'
import { useFollow } from '../../../data/follow.ts'
import { NO_PROGRESS, type Progress, progressAfter } from './progress.ts'
import { FOLLOW, START } from './runs.ts'

/** Follows a run until it ends. Null: there is no run to follow. Give the component a key of the run. */
export function useRunProgress(runId: string | null): { readonly progress: Progress; readonly failure: Failure | null } {
  const [progress, dispatch] = useReducer(progressAfter, NO_PROGRESS)
  const failure = useFollow(FOLLOW, runId, ({ agentRunEvents: event }) => {
    dispatch(event)
    return event.cursor
  })
  return { progress, failure }
}

interface Question {
  readonly agentId: string
  readonly input: string
  readonly threadId: string | null
}

/**
 * Starts a run. The key makes it the same run if the connection breaks before the first event, so nobody pays twice.
 * After the first event the run goes on by itself.
 */
export function useStartRun(): (question: Question, key: string) => Promise<{ readonly runId: string } | { readonly failure: Failure }> {
  const client = useClient()
  return ({ agentId, input, threadId }, key) =>
    new Promise((resolve) => {
      const started = client
        .subscription(START, { input: { agentId, input, idempotencyKey: key, ...(threadId ? { threadId } : { keepThread: true }) } })
        .subscribe(({ data, error }) => {
          if (error) resolve({ failure: toFailure(error) })
          else if (data) resolve({ runId: data.agentRun.runId })
          else return
          // The first answer may come before `subscribe` has returned.
          queueMicrotask(() => started.unsubscribe())
        })
    })
}
