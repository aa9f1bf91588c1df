import type { Client as Socket } from 'graphql-ws'
import { type Client, cacheExchange, createClient, fetchExchange, mapExchange, subscriptionExchange } from 'urql'
import { connection } from './connection.ts'
import type { Listener } from './event-stream.ts'
import { toFailure } from './failure.ts'
import { loadModule } from './load-module.ts'
import { resumeAfter, type Sent } from './resume.ts'

/** Starts a subscription, and returns the function that ends it. */
type Subscribe = (sent: Sent, listener: Listener) => () => void

/** A GraphQL client with its socket, for one session. */
export interface Connected {
  readonly client: Client
  /** Closes the socket and drops the cache, with the session. */
  close(): void
}

/**
 * Most characters of a subscription's variables that go over the socket. A message of it may have 1 MiB, a character up
 * to 3 bytes.
 */
const MAX_SOCKET_CHARACTERS = 256 * 1024

/**
 * Creates the client of the service: HTTP for queries and mutations, one socket for subscriptions. A subscription with
 * large variables, such as a chat with an image, is an HTTP request of its own. All carry the session's cookie.
 * `onSignedOut`: the session has ended. `onRefused`: it lacks a permission.
 */
export function connect(onSignedOut: () => void, onRefused: () => void): Connected {
  let socket: Promise<Socket> | null = null
  // The socket opens late, because most pages show something before they subscribe to anything.
  const openSocket = () => {
    socket ??= loadModule(() => import('./socket.ts')).then(({ createSocket }) => createSocket(onSignedOut))
    return socket
  }
  const bySocket = async (): Promise<Subscribe> => {
    const opened = await openSocket()
    return (sent, listener) => opened.subscribe(sent as never, listener)
  }
  const byHttp = async (): Promise<Subscribe> => (await loadModule(() => import('./event-stream.ts'))).subscribeByHttp
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
          // A subscription's socket reports its own loss.
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
            const listener: Listener = {
              next(event) {
                resumeAfter(sent, (event as { readonly data?: unknown }).data)
                sink.next(event as never)
              },
              error: (error) => sink.error(error),
              complete: () => sink.complete(),
            }
            const isLarge = JSON.stringify(variables).length > MAX_SOCKET_CHARACTERS
            void (isLarge ? byHttp() : bySocket()).then((subscribe) => {
              if (!isOver) unsubscribe = subscribe(sent, listener)
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
