import type { Client as Socket } from 'graphql-ws'
import { type Client, cacheExchange, createClient, fetchExchange, mapExchange, subscriptionExchange } from 'urql'
import { connection } from './connection.ts'
import { toFailure } from './failure.ts'
import { loadModule } from './load-module.ts'
import { resumeAfter, type Sent } from './resume.ts'

export interface Connected {
  readonly client: Client
  /** Ends the socket and the cache, with the session. */
  close(): void
}

/**
 * Asks the service: HTTP for queries and mutations, one socket for all subscriptions. Both carry the session's cookie.
 * `onSignedOut`: the session has ended. `onRefused`: it lacks a permission.
 */
export function connect(onSignedOut: () => void, onRefused: () => void): Connected {
  let socket: Promise<Socket> | null = null
  // Most pages show something before they subscribe to anything.
  const openSocket = () => {
    socket ??= loadModule(() => import('./socket.ts')).then(({ createSocket }) => createSocket(onSignedOut))
    return socket
  }
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
          if (code === 'permission_denied') onRefused()
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
            let isOver = false
            let unsubscribe = () => {}
            void openSocket().then((socket) => {
              if (isOver) return
              unsubscribe = socket.subscribe(sent as never, {
                next: (event) => {
                  resumeAfter(sent, event.data)
                  sink.next(event as never)
                },
                error: (error) => sink.error(error),
                complete: () => sink.complete(),
              })
            })
            return {
              unsubscribe() {
                isOver = true
                unsubscribe()
              },
            }
          },
        }),
      }),
    ],
  })
  return { client, close: () => void socket?.then((opened) => opened.dispose()) }
}
