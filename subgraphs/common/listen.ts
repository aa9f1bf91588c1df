import type { ServerResponse } from 'node:http'
import { type AddressInfo, Server, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Clock } from './clock.ts'
import { IDLE_CONNECTION_MS } from './remote-link.ts'

/** Other processes have this long to close their idle connections by themselves: more than they wait. */
const HANDOVER_MS = IDLE_CONNECTION_MS + 500
/** A connection on which nothing has come in may just have been opened for a request: that has this long to arrive. */
const SILENT_MS = 500
const LOOK_MS = 25
/** What was ended has this long to say so; then its connection is cut. */
const CUT_MS = 2_000

/** Something under way in a server. */
export interface Drainable {
  /** Takes on nothing new; resolves when nothing is under way any more. HTTP requests are waited for without it. */
  drain?(): Promise<void>
  /** Ends what is under way, each with an answer. */
  end(): void
}

export interface ListenOptions {
  readonly host: string
  readonly port: number
  /** What each answer's `date` shows, for those who go by it. */
  readonly clock: Clock
  /** How long what is under way may go on after the server has begun to stop. */
  readonly drainMs: number
  /** True: other processes keep connections open, and may be sending a request on an idle one while it would be closed here. */
  readonly hasPeers: boolean
}

/**
 * Listens. Disposing stops without failing a request: no connection is taken on, each answer says `connection: close`, what is under way goes on for
 * `drainMs`, then it is ended, and at last cut. The app must have been made with `return503OnClosing: false`.
 */
export async function listen(
  app: FastifyInstance,
  options: ListenOptions,
  parts: readonly Drainable[],
): Promise<{ readonly url: string } & AsyncDisposable> {
  const { host, port, clock, drainMs, hasPeers } = options
  const unanswered = new Set<ServerResponse>()
  const connections = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  let isStopping = false
  app.server.prependListener('request', (_request, response: ServerResponse) => {
    response.setHeader('date', clock.now().toUTCString())
    if (isStopping) response.shouldKeepAlive = false
    unanswered.add(response)
    response.once('close', () => unanswered.delete(response))
  })
  await app.listen({ host, port })
  const { port: boundPort } = app.server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    async [Symbol.asyncDispose]() {
      isStopping = true
      for (const response of unanswered) response.shouldKeepAlive = false
      // That of `http.Server` closes idle connections at once.
      Server.prototype.close.call(app.server)
      const cut = Promise.withResolvers<void>()
      const timers = [
        // Clients open connections in reserve, as after an abort. Node takes one that never had a request for busy, and would wait for it.
        setTimeout(
          () => {
            for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
          },
          hasPeers ? HANDOVER_MS : SILENT_MS,
        ),
        setTimeout(() => {
          for (const part of parts) part.end()
        }, drainMs),
        setTimeout(() => {
          app.server.closeAllConnections()
          cut.resolve()
        }, drainMs + CUT_MS),
      ]
      const handedOver = hasPeers ? connectionsEnd(app, Math.min(HANDOVER_MS, drainMs)) : undefined
      await Promise.race([Promise.all([handedOver, ...parts.map((part) => part.drain?.())]), cut.promise])
      await app.close()
      for (const timer of timers) clearTimeout(timer)
    },
  }
}

/** Resolves when no connection is left, at the latest after `withinMs`. */
async function connectionsEnd(app: FastifyInstance, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs
  const count = () => new Promise<number>((resolve) => app.server.getConnections((_error, connections) => resolve(connections ?? 0)))
  while ((await count()) > 0 && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
}
