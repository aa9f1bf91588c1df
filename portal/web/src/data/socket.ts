import { type Client, createClient } from 'graphql-ws'
import { connection } from './connection.ts'

const MAX_WAIT_MS = 15_000
/** A socket that has broken without a word, as when a phone changes its network, answers no ping. */
const PING_MS = 10_000
const PONG_MS = 5_000
/** The socket stays open this long after its last subscription, for the next page's. */
const LINGER_MS = 10_000
/** The close code of a session that has ended. The client of graphql-ws gives up after it. */
const UNAUTHORIZED = 4401

/** One socket for all subscriptions. It connects again for ever, each time later. `onSignedOut`: the session has ended. */
export function createSocket(onSignedOut: () => void): Client {
  let unanswered: ReturnType<typeof setTimeout> | undefined
  const socket = createClient({
    url: `${location.origin.replace(/^http/, 'ws')}/graphql`,
    lazyCloseTimeout: LINGER_MS,
    keepAlive: PING_MS,
    connectionAckWaitTimeout: PONG_MS,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: () => true,
    retryWait: async (retries) => {
      connection.lose()
      const wait = Math.min(500 * 2 ** retries, MAX_WAIT_MS) * (0.75 + Math.random() / 2)
      await Promise.race([
        new Promise((resolve) => setTimeout(resolve, wait)),
        new Promise<void>((resolve) => {
          const unsubscribe = connection.onReturn(() => {
            unsubscribe()
            resolve()
          })
        }),
      ])
    },
    on: {
      // That the service answers to HTTP, too, is seen there.
      connected: () => connection.hurry(),
      ping: (isReceived) => {
        if (isReceived) return
        clearTimeout(unanswered)
        unanswered = setTimeout(() => socket.terminate(), PONG_MS)
      },
      pong: (isReceived) => {
        if (isReceived) clearTimeout(unanswered)
      },
      closed: (event) => {
        clearTimeout(unanswered)
        if ((event as CloseEvent).code === UNAUTHORIZED) onSignedOut()
      },
    },
  })
  return socket
}
