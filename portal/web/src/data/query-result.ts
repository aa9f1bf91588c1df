import { useCallback, useEffect, useMemo, useState } from 'react'
import { type AnyVariables, type TypedDocumentNode, type UseSubscriptionArgs, useClient, useQuery, useSubscription } from 'urql'
import { connection } from './connection.ts'
import { type Failure, toFailure } from './failure.ts'

/** What a page shows: it waits, it failed, or it has all of what it asked for. */
export type QueryResult<Data> =
  | { readonly state: 'loading' }
  | { readonly state: 'failed'; readonly failure: Failure; readonly retry: () => void }
  | { readonly state: 'ready'; readonly data: Data; readonly isRefreshing: boolean; readonly refresh: () => void }

/** Asks, and asks again when a lost connection is back. While it asks again, the earlier answer stays. */
export function useQueryResult<Data, Variables extends AnyVariables>(
  query: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  options: {
    /** Asks nothing yet. */
    readonly pause?: boolean
    /** Types that the answer depends on although it may hold none of them: a list that is empty. */
    readonly types?: readonly string[]
  } = {},
): QueryResult<Data> {
  const { pause = false } = options
  const types = options.types?.join()
  const context = useMemo(() => (types ? { additionalTypenames: types.split(',') } : {}), [types])
  const [{ data, error, fetching, stale }, execute] = useQuery<Data, Variables>({ query, variables, pause, context } as never)
  const refresh = useCallback(() => execute({ requestPolicy: 'network-only' }), [execute])
  useEffect(() => connection.onReturn(refresh), [refresh])
  if (error) {
    const failure = toFailure(error)
    // What is on the screen stays behind the banner of a lost connection, and behind the dialog to sign in again.
    if (data && (failure.code === 'unreachable' || failure.code === 'invalid_api_key')) {
      return { state: 'ready', data, isRefreshing: false, refresh }
    }
    if (failure.code === 'invalid_api_key') return { state: 'loading' }
    return { state: 'failed', failure, retry: refresh }
  }
  if (data === undefined || data === null) return { state: 'loading' }
  return { state: 'ready', data, isRefreshing: fetching || stale, refresh }
}

interface Action<Data, Variables> {
  /** Null: it failed, and `failure` says why. */
  readonly run: (variables: Variables) => Promise<Data | null>
  readonly isRunning: boolean
  readonly failure: Failure | null
  readonly reset: () => void
}

/** One action of the user. Lists with objects of the types that it answers with are asked for again. */
export function useAction<Data, Variables extends AnyVariables>(mutation: TypedDocumentNode<Data, Variables>): Action<Data, Variables> {
  const client = useClient()
  const [isRunning, setRunning] = useState(false)
  const [failure, setFailure] = useState<Failure | null>(null)
  const run = useCallback(
    async (variables: Variables) => {
      setRunning(true)
      setFailure(null)
      const { data, error } = await client.mutation(mutation, variables).toPromise()
      setRunning(false)
      if (!error) return data ?? null
      setFailure(toFailure(error))
      return null
    },
    [client, mutation],
  )
  const reset = useCallback(() => setFailure(null), [])
  return { run, isRunning, failure, reset }
}

/** Tells each event of a subscription to `onEvent`. Returns why it ended, if it failed. */
export function useEvents<Data, Variables extends AnyVariables>(
  subscription: TypedDocumentNode<Data, Variables>,
  variables: Variables,
  onEvent: (data: Data) => void,
  options: { readonly pause?: boolean } = {},
): Failure | null {
  const [{ error }] = useSubscription<Data, null, Variables>(
    { query: subscription, variables, pause: options.pause ?? false } as UseSubscriptionArgs<Variables, Data>,
    (_, data) => {
      onEvent(data)
      return null
    },
  )
  return useMemo(() => (error ? toFailure(error) : null), [error])
}
