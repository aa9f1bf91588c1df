import { lookup } from 'node:dns/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, Server, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { KisError } from '../errors.ts'
import { IDLE_CONNECTION_MS } from '../link/link.ts'
import type { Clock } from '../process/clock.ts'
import { VERSIONS } from '../process/versions.ts'
import { SMALL_BODY_BYTES } from './admission/large-bodies.ts'
import { type DataRateLimits, MINIMUM_DATA_RATE, MinimumDataRate } from './minimum-data-rate.ts'

/** Other processes close their idle connections within this time: it is longer than their own limit. */
const HANDOVER_MS = IDLE_CONNECTION_MS + 500
/** A silent connection may have just been opened for a request, which has this long to arrive. */
const SILENT_MS = 500
const POLL_MS = 25
/** Requests that were ended have this long to send their answer. Then the connection is closed. */
const CUT_MS = 2_000

/** Time to send the headers of a request, and to send anything at all on a new connection. */
const HEADERS_TIMEOUT_MS = 10_000
/**
 * Time to send a whole request: 28 MiB at 1 Mbit/s take 4 minutes. Clients below the minimum rate are disconnected
 * sooner.
 */
const REQUEST_TIMEOUT_MS = 300_000
/** How often connections are checked: are they in time, do they make progress? */
const CONNECTION_CHECK_MS = 1_000
/**
 * Above the 10,000 sockets of subscriptions, so that there is room for requests. An idle connection takes about 20 KiB.
 */
const MAX_CONNECTIONS = 16_384
/**
 * Connections waiting to be accepted, as far as the system allows (`net.core.somaxconn`). The client's system retries
 * others after a second or more.
 */
const BACKLOG = 4_096
/**
 * After an early answer the client may go on sending for this long. If it were disconnected sooner, it would lose the
 * answer.
 */
const LINGER_MS = 5_000
/** The client may go on sending so many bytes: five times the largest body that is held in memory. */
const LINGER_BYTES = 160 * 1024 * 1024
const LINGER_POLL_MS = 100

/**
 * Requests that one connection may send without waiting for an answer. HTTP clients wait for each answer; beyond this
 * the connection is closed.
 */
const MAX_PIPELINED = 64

/** Common options of every app of the service. Routes set the size of their bodies themselves. */
export const APP_OPTIONS = {
  forceCloseConnections: 'idle',
  return503OnClosing: false,
  bodyLimit: SMALL_BODY_BYTES,
  requestTimeout: REQUEST_TIMEOUT_MS,
  http: { headersTimeout: HEADERS_TIMEOUT_MS, connectionsCheckingInterval: CONNECTION_CHECK_MS },
} as const

/**
 * Options of an app whose routes have no schemas for Fastify: its compilers, which take 50 ms and 4 MB to load, are left
 * out. The app does not start with a route that has one.
 */
export const WITHOUT_SCHEMAS = {
  schemaController: { compilersFactory: { buildValidator: refuseSchemas, buildSerializer: refuseSchemas } },
}

function refuseSchemas(): never {
  throw new Error('A route of this app has a schema. Check its input in the route, as the others do.')
}

/** Running work of a server. */
export interface Drainable {
  /** Accepts nothing new. Resolves when nothing is running any more. HTTP requests are waited for without it. */
  drain?(): Promise<void>
  /** Ends all running work, each with an answer. */
  end(): void
}

/** Calls `start`, now or later, for a request that goes on to the app. Answers a request that does not. */
export type Admit = (request: IncomingMessage, response: ServerResponse, start: () => void) => void

interface ListenOptions {
  readonly host: string
  readonly port: number
  /** The clock of each answer's `date`, for processes that follow it. */
  readonly clock: Clock
  /** Called before anything else is done for a request. Default: every request goes on at once. */
  readonly admit?: Admit
  /** How long running work may go on after the server has begun to stop. */
  readonly drainMs: number
  /**
   * True: other processes keep connections open, and might be sending a request on an idle one while it is closed here.
   */
  readonly hasPeers: boolean
  /** Concurrent connections. Default: 16,384. Beyond it idle ones are closed. */
  readonly maxConnections?: number
  /** Default: `MINIMUM_DATA_RATE`, checked once a second. */
  readonly dataRate?: DataRateLimits & { readonly checkMs: number }
}

/**
 * Listens. Disconnects clients that are too slow; a request that arrives too slowly is answered `request_timeout`.
 * Disposing stops without failing requests: no new connections, `connection: close` in each answer, running work goes
 * on for `drainMs`, then it is ended, and at last disconnected. The app must be made with `APP_OPTIONS`.
 */
export async function listen(
  app: FastifyInstance,
  options: ListenOptions,
  parts: readonly Drainable[],
): Promise<{ readonly url: string } & AsyncDisposable> {
  const {
    host,
    port,
    clock,
    drainMs,
    hasPeers,
    maxConnections = MAX_CONNECTIONS,
    dataRate = { ...MINIMUM_DATA_RATE, checkMs: CONNECTION_CHECK_MS },
  } = options
  const unanswered = new Set<ServerResponse>()
  const connections = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  let isStopping = false
  app.server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
    response.setHeader('date', clock.now().toUTCString())
    response.setHeader('x-kis-version', VERSIONS.version)
    if (isStopping) response.shouldKeepAlive = false
    unanswered.add(response)
    response.once('close', () => {
      unanswered.delete(response)
      if (!request.complete && !request.socket.destroyed) discardRest(request)
    })
  })
  admitFirst(app, options.admit ?? ((_request, _response, start) => start()))
  // The code that admits the body sends `100 Continue`.
  app.server.on('checkContinue', (request, response) => app.server.emit('request', request, response))
  app.server.maxConnections = maxConnections
  app.server.on('drop', () => app.server.closeIdleConnections())
  const judge = new MinimumDataRate(dataRate)
  const looking = setInterval(() => {
    const requests = [...unanswered].map(({ req }) => req)
    const { slowBodies, slowReaders } = judge.check(requests, connections, performance.now())
    for (const request of slowBodies) endSlowBody(request)
    for (const socket of slowReaders) socket.destroy()
  }, dataRate.checkMs).unref()
  app.addHook('onClose', async () => clearInterval(looking))
  // With the name, Fastify would open a second server for the other address, without any of this.
  const address = host === 'localhost' ? (await lookup(host)).address : host
  await app.listen({ host: address, port, backlog: BACKLOG }).catch((cause: Error) => {
    throw new Error(`Port ${port} of ${host} cannot be opened (PORT, HOST): ${cause.message}`, { cause })
  })
  const { port: boundPort } = app.server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    async [Symbol.asyncDispose]() {
      isStopping = true
      for (const response of unanswered) response.shouldKeepAlive = false
      // The method of `http.Server` closes idle connections at once.
      Server.prototype.close.call(app.server)
      const cut = Promise.withResolvers<void>()
      const timers = [
        // Clients open spare connections, as after an abort. Node treats one without a request as busy, and would wait
        // for it.
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

/** Refused requests never reach the app: under overload most time would be spent there. */
function admitFirst(app: FastifyInstance, admit: Admit): void {
  const [counting, ...others] = app.server.listeners('request') as ((request: IncomingMessage, response: ServerResponse) => void)[]
  const pipelined = new WeakMap<Socket, number>()
  app.server.removeAllListeners('request')
  app.server.on('request', (request, response) => {
    const { socket } = request
    if (socket.destroyed) return
    const waiting = (pipelined.get(socket) ?? 0) + 1
    pipelined.set(socket, waiting)
    response.once('close', () => pipelined.set(socket, pipelined.get(socket)! - 1))
    if (waiting > MAX_PIPELINED) {
      socket.destroy()
      return
    }
    counting!(request, response)
    admit(request, response, () => {
      if (!socket.destroyed) for (const listener of others) listener.call(app.server, request, response)
    })
  })
}

/** Resolves when no connection is left, at the latest after `withinMs`. */
async function connectionsEnd(app: FastifyInstance, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs
  const count = () => new Promise<number>((resolve) => app.server.getConnections((_error, connections) => resolve(connections ?? 0)))
  while ((await count()) > 0 && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, POLL_MS))
}

/** The code that reads the body answers with the error. */
function endSlowBody(request: IncomingMessage): void {
  const error = new KisError('request_timeout', 'The request arrived too slowly. Send it again over a faster connection.')
  if (request.listenerCount('error') > 0) request.emit('error', error)
  else request.destroy()
}

/**
 * Reads on and keeps nothing, so that a client that sends everything before it reads finds its answer. Closes the socket
 * if the rest is too long or too late.
 */
function discardRest(request: IncomingMessage): void {
  const { socket } = request
  const startBytes = socket.bytesRead
  request.unpipe()
  request.resume()
  const endMs = performance.now() + LINGER_MS
  const looking = setInterval(() => {
    const isTooMuch = socket.bytesRead - startBytes > LINGER_BYTES || performance.now() > endMs
    if (isTooMuch && !request.complete) socket.destroy()
    if (request.complete || socket.destroyed) clearInterval(looking)
  }, LINGER_POLL_MS).unref()
}
