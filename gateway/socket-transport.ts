import type { Server } from 'graphql-ws'
import type { WebSocket } from 'ws'
import type { Log } from '../subgraphs/common/process/log.ts'

/** A client that does not answer a ping before the next one is disconnected. */
const PING_MS = 12_000
/** graphql-ws's code for a failure of the server. */
const INTERNAL_ERROR = 4500

/**
 * Runs graphql-ws's server on one socket. graphql-ws's own `use/ws` does the same but prints clients' mistakes to the
 * console, so that anybody could fill the log. A message counts as sent when it has left the process, so an operation
 * waits for a slow client.
 */
export function runOnSocket<Extra>(server: Server<Extra>, socket: WebSocket, extra: Extra, log: Log): void {
  const closed = server.opened(
    {
      protocol: socket.protocol,
      send: (text) =>
        new Promise((resolve) => {
          if (socket.readyState !== socket.OPEN) return resolve()
          // If a message cannot be sent, the client is gone: `close` reports it and ends the operations.
          socket.send(text, () => resolve())
        }),
      close: (code, reason) => socket.close(code, reason),
      onMessage: (handle) =>
        socket.on('message', (message) => {
          handle(String(message)).catch((error) => {
            log.error({ err: error }, 'defect in the handling of a socket message')
            socket.close(INTERNAL_ERROR, 'Internal server error')
          })
        }),
    },
    extra,
  )
  const stopPinging = ping(socket)
  // `ws` closes the socket itself with the right code, such as 1009 for a message that is too long.
  socket.on('error', (error) => log.debug({ err: error }, 'a client broke the WebSocket protocol'))
  socket.once('close', (code, reason) => {
    stopPinging()
    void closed(code, String(reason))
  })
}

function ping(socket: WebSocket): () => void {
  let hasResponded = true
  socket.on('pong', () => {
    hasResponded = true
  })
  const timer = setInterval(() => {
    if (!hasResponded) return socket.terminate()
    hasResponded = false
    socket.ping()
  }, PING_MS)
  return () => clearInterval(timer)
}
