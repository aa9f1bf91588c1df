import { createClient as createSocket } from 'graphql-ws'
import { type Client, cacheExchange, createClient, fetchExchange, mapExchange, subscriptionExchange } from 'urql'
import { connection } from './connection.ts'
import { toFailure } from './failure.ts'
import { resumeAfter, type Sent } from './resume.ts'

const MAX_WAIT_MS = 15_000
/** The socket stays open this long after its last subscription, for the next page's. */
const LINGER_MS = 10_000
/** The close code of a session that has ended. The client of graphql-ws gives up after it. */
const UNAUTHORIZED = 4401

export interface Connected {
  readonly client: Client
  /** Ends the socket and the cache, with the session. */
  close(): void
}

/**
 * Asks the service: HTTP for queries and mutations, one socket for all subscriptions. Both carry the session's cookie.
 * The socket connects again for ever, each time later. `onSignedOut`: the session has ended.
 */
export function connect(onSignedOut: () => void): Connected {
  const socket = createSocket({
    url: `${location.origin.replace(/^http/, 'ws')}/graphql`,
    lazyCloseTimeout: LINGER_MS,
    keepAlive: 15_000,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: () => true,
    retryWait: async (retries) => {
      connection.lose()
      const wait = Math.min(500 * 2 ** retries, MAX_WAIT_MS) * (0.75 + Math.random() / 2)
      await Promise.race([
        new Promise((resolve) => setTimeout(resolve, wait)),
        new Promise<void>((resolve) => {
          const forget = connection.onReturn(() => {
            forget()
            resolve()
          })
        }),
      ])
    },
    on: {
      connected: () => connection.restore(),
      closed: (event) => {
        if ((event as CloseEvent).code === UNAUTHORIZED) onSignedOut()
      },
    },
  })
  const client = createClient({
    url: '/graphql',
    fetchOptions: { credentials: 'same-origin' },
    preferGetMethod: false,
    requestPolicy: 'cache-and-network',
    exchanges: [
      mapExchange({
        onResult({ error, operation }) {
          if (!error) return
          const { code } = toFailure(error)
          if (code === 'invalid_api_key') onSignedOut()
          // A subscription's socket says itself when it is lost.
          if (code === 'unreachable' && operation.kind !== 'subscription') connection.lose()
        },
      }),
      cacheExchange,
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: ({ query = '', variables = {} }) => ({
          subscribe: (sink) => {
            const sent: Sent = { query, variables: variables as Record<string, unknown> }
            const unsubscribe = socket.subscribe(sent as never, {
              next: (event) => {
                resumeAfter(sent, event.data)
                sink.next(event as never)
              },
              error: (error) => sink.error(error),
              complete: () => sink.complete(),
            })
            return { unsubscribe }
          },
        }),
      }),
    ],
  })
  return { client, close: () => void socket.dispose() }
}
