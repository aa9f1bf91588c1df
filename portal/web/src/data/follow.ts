import { useEffect, useRef, useState } from 'react'
import { type TypedDocumentNode, useClient } from 'urql'
import { connection } from './connection.ts'
import { type Failure, toFailure } from './failure.ts'

/** How soon it is tried again after a failure that may pass, where the service does not say it. */
const RETRY_MS = 2_000

/**
 * Follows a run by a subscription that costs nothing. When a lost connection is back, and after a failure that may pass,
 * it goes on after the last event that came; an event may come twice. `onEvent` returns the cursor of its event. Null:
 * there is no run to follow. Returns why it failed, until the next event.
 */
export function useFollow<Data>(
  subscription: TypedDocumentNode<Data, { runId: string; after?: string | null }>,
  runId: string | null,
  onEvent: (data: Data) => string,
): Failure | null {
  const client = useClient()
  const [failure, setFailure] = useState<Failure | null>(null)
  const onEventRef = useRef(onEvent)
  onEventRef.current = onEvent
  useEffect(() => {
    if (runId === null) return
    let after: string | null = null
    let timer: ReturnType<typeof setTimeout> | undefined
    const subscribe = () =>
      client.subscription(subscription, { runId, after }).subscribe(({ data, error }) => {
        const failed = error ? toFailure(error) : null
        setFailure(failed)
        if (data) after = onEventRef.current(data)
        if (failed?.shouldRetry) timer = setTimeout(again, failed.retryAfterMs ?? RETRY_MS)
      })
    const again = () => {
      clearTimeout(timer)
      current.unsubscribe()
      current = subscribe()
    }
    let current = subscribe()
    const unsubscribe = connection.onReturn(again)
    return () => {
      clearTimeout(timer)
      unsubscribe()
      current.unsubscribe()
    }
  }, [client, subscription, runId])
  return failure
}
