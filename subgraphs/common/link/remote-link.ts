import type { ExecutionResult, GraphQLError } from 'graphql'
import { type Client, createClient } from 'graphql-ws'
import { LRUCache } from 'lru-cache'
import { Client as HttpClient, Pool } from 'undici'
import { WebSocket } from 'ws'
import { InvalidApiKey, isAbort, isNotHere, KisError, ServiceUnavailable } from '../errors.ts'
import { systemClock } from '../process/clock.ts'
import { cutNote } from '../process/cut-operations.ts'
import { endableIterator } from '../process/endable-iterator.ts'
import { randomHex } from '../process/ids.ts'
import { isRefusal, ORDERLY_CLOSE } from '../process/socket-drain.ts'
import { answerTimeMs, LONG_MS } from './answer-time.ts'
import { type Endpoint, Endpoints, type Turn } from './endpoints.ts'
import type { Link, LinkContext, Operation } from './link.ts'
import type { SharedClock } from './shared-clock.ts'
import { UnreadEvents } from './unread-events.ts'

/** Concurrent HTTP operations of one process at one replica. A call of a slow model keeps its connection busy. */
const MAX_CONNECTIONS = 1_024
/** A replica that takes longer to connect counts as down. */
const CONNECT_TIMEOUT_MS = 2_000
/**
 * This side closes idle connections before a draining server does, so that no request meets a connection that is being
 * closed.
 */
export const IDLE_CONNECTION_MS = 2_000
/** A replica that leaves any operation unanswered for this long is pinged. */
const SUSPECT_MS = 2_000
/** A process that answers a ping within this time is slow, but not away. */
const SIGN_OF_LIFE_MS = 2_000
/** How often a replica that is away is pinged. */
const ASK_AGAIN_MS = 500
/** An embedding answer of 2,048 vectors of 3,072 floats is 33 MB as base64. */
const MAX_ANSWER_BYTES = 48 * 1024 * 1024
/** Frames between services carry chat requests with images, 20 MiB, and audio files: 25 MiB, or 33.4 MiB as base64. */
export const MAX_SERVICE_FRAME_BYTES = 36 * 1024 * 1024
/** An idle socket is closed after this time. The next operation opens another. */
const IDLE_SOCKET_MS = 10_000
/** Sockets to one replica. */
const MAX_SOCKETS = 10_000

/** Close codes of a server that does not, or no longer, accept the caller. */
const REFUSALS: readonly unknown[] = [4401, 4403]
/** HTTP status of a server that does not accept the caller. */
const UNAUTHORIZED = 401
/** Codes of a connection that failed, so nothing was sent. */
const NOT_CONNECTED: readonly unknown[] = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT']

export interface RemoteLinkOptions<Who> {
  /**
   * Addresses of the replicas, such as `http://127.0.0.1:4001`. Operations go to their `/graphql`. A host name stands
   * for all its addresses.
   */
  readonly urls: readonly string[]
  /** The name in errors. */
  readonly what: string
  /**
   * The value of the `authorization` header; null: none. Callers with equal `socketKey` share a socket, others never
   * do.
   */
  authorization(caller: Who): Promise<string | null>
  socketKey(caller: Who): string
  /** A clock to set by the answers of the other side. Default: none. */
  readonly clock?: SharedClock
  /** A factor for how long answers may take, compared with those of a subgraph. Default: 1. */
  readonly patience?: number
  /** Headers of every request and WebSocket upgrade that identify this service. Default: none. */
  serviceHeaders?(): Promise<Record<string, string>>
}

/**
 * A link to another service: HTTP keep-alive for queries and mutations, graphql-ws for subscriptions, each to the
 * replica with the least work. An operation that was not begun, because a replica is gone, starting or draining, goes
 * to the next one; so does a subscription to something that this replica does not have. Nothing else is ever repeated. A replica that leaves an operation unanswered for too long, and then
 * does not answer a ping either, gets no operations until it does.
 */
export function remoteLink<Who>(options: RemoteLinkOptions<Who>): Link<Who> & AsyncDisposable {
  const { urls, what, authorization } = options
  const replicas = new Endpoints(urls, (endpoint) => new Replica(endpoint, options))
  const failure = (cause: unknown): ExecutionResult => {
    const { message, extensions } = errorOf(cause, what)
    // A result is plain JSON, even if this process made it.
    return { errors: [{ message, extensions } as unknown as GraphQLError] }
  }

  return {
    async execute(operation, context) {
      let cause: unknown
      for await (const turn of replicas.turns()) {
        try {
          if (turn.connection.isAway) continue
          const { result, isMisdated } = await turn.connection.execute(operation, context, await authorization(context.caller))
          cause = result.errors
          if (isMisdated) continue
          if (!isRefusal(result.errors)) return result
          turn.fail()
        } catch (error) {
          if (context.signal.aborted && isAbort(error)) throw error
          if (error instanceof RangeError) throw errorOf(error, what)
          cause = error
          if (!NOT_CONNECTED.includes(readCode(error))) break
          turn.fail()
        } finally {
          turn.end()
        }
      }
      throw new ServiceUnavailable(what, { cause })
    },

    subscribe(operation, context) {
      const turns = replicas.turns()
      let turn: Turn<Replica<Who>> | undefined
      let attempt: Attempt | undefined
      let cause: unknown
      /** What the replicas say that were asked and do not have it, and those that could not be asked. */
      const denials = new Map<Replica<Who>, ExecutionResult>()
      const missed = new Set<Replica<Who>>()
      const lastResult = () => (missed.size === 0 && denials.values().next().value) || failure(cause)
      let isOver = false
      const leave = () => {
        attempt?.dispose()
        turn?.end()
        attempt = turn = undefined
      }
      return endableIterator<ExecutionResult>(
        async () => {
          while (!isOver) {
            if (!attempt) {
              turn = (await turns.next()).value ?? undefined
              if (!turn) {
                isOver = true
                return { done: false, value: lastResult() }
              }
              if (isOver) break
              if (turn.connection.isAway) missed.add(turn.connection)
              if (turn.connection.isAway || denials.has(turn.connection)) {
                leave()
                continue
              }
              attempt = turn.connection.subscribe(operation, context, failure)
            }
            const event = await attempt.events.next()
            const replica = turn?.connection
            if (replica && !event.done && isNotHere(event.value.errors)) {
              denials.set(replica, event.value)
              missed.delete(replica)
            } else if (!attempt?.notBegun) {
              return event
            } else {
              cause = attempt.notBegun.cause
              if (replica) missed.add(replica)
              turn?.fail()
            }
            leave()
          }
          leave()
          return { done: true, value: undefined }
        },
        () => {
          isOver = true
          leave()
        },
        context.signal,
      )
    },

    [Symbol.asyncDispose]: () => replicas[Symbol.asyncDispose](),
  }
}

/** A subscription at one replica. */
interface Attempt {
  readonly events: UnreadEvents
  /** Set with the last event when the replica did nothing for the subscription, with the reason. */
  readonly notBegun: { readonly cause: unknown } | undefined
  dispose(): void
}

/** A socket, and whether its server has accepted the caller. */
interface Socket {
  readonly client: Client
  isConnected: boolean
  raw?: WebSocket
}

class Replica<Who> implements AsyncDisposable {
  readonly #endpoint: Endpoint
  readonly #options: RemoteLinkOptions<Who>
  readonly #pool: Pool
  /** A pool of its own for pings: the other connections may all be waiting for models. */
  readonly #signs: HttpClient
  readonly #sockets = new LRUCache<string, Socket>({ max: MAX_SOCKETS })
  readonly #over = new AbortController()
  #isSuspect = false
  /** True while it does not answer pings. */
  isAway = false

  constructor(endpoint: Endpoint, options: RemoteLinkOptions<Who>) {
    this.#endpoint = endpoint
    this.#options = options
    this.#pool = new Pool(endpoint.origin, {
      connections: MAX_CONNECTIONS,
      connect: { timeout: CONNECT_TIMEOUT_MS },
      keepAliveTimeout: IDLE_CONNECTION_MS,
      keepAliveMaxTimeout: IDLE_CONNECTION_MS,
      headersTimeout: LONG_MS,
      bodyTimeout: LONG_MS,
      maxResponseSize: MAX_ANSWER_BYTES,
    })
    this.#signs = new HttpClient(endpoint.origin, {
      connect: { timeout: CONNECT_TIMEOUT_MS },
      keepAliveTimeout: IDLE_CONNECTION_MS,
      keepAliveMaxTimeout: IDLE_CONNECTION_MS,
    })
  }

  /** `isMisdated`: it was refused because this process's clock was wrong. The clock is right now. */
  async execute(
    operation: Operation,
    { requestId, signal }: LinkContext<unknown>,
    authorization: string | null,
  ): Promise<{ readonly result: ExecutionResult; readonly isMisdated: boolean }> {
    const sentAt = performance.now()
    const overdue = new AbortController()
    const timers = [
      setTimeout(() => void this.#suspect(), SUSPECT_MS),
      setTimeout(() => overdue.abort(new Error('no answer in time')), answerTimeMs(operation.query) * (this.#options.patience ?? 1)),
    ]
    try {
      const ended = AbortSignal.any([signal, overdue.signal])
      const request = this.#pool.request({
        method: 'POST',
        path: '/graphql',
        headers: {
          host: this.#endpoint.host,
          'content-type': 'application/json',
          'x-request-id': requestId,
          ...(authorization && { authorization }),
          ...(await this.#options.serviceHeaders?.()),
        },
        body: JSON.stringify(operation),
        signal: ended,
      })
      const { body, headers, statusCode } = await orAborted(request, ended)
      const wasSet = this.#options.clock?.observe(new Date(String(headers.date)), sentAt) ?? false
      const result = JSON.parse(await body.text()) as ExecutionResult
      if (!result.data && !result.errors) throw new Error('not a GraphQL answer')
      return { result, isMisdated: wasSet && statusCode === UNAUTHORIZED }
    } finally {
      for (const timer of timers) clearTimeout(timer)
    }
  }

  /** Pings until there is an answer. */
  async #suspect(): Promise<void> {
    if (this.#isSuspect) return
    this.#isSuspect = true
    while (!this.#over.signal.aborted) {
      this.isAway = !(await this.#isAlive())
      if (!this.isAway) break
      await systemClock.sleep(ASK_AGAIN_MS, this.#over.signal).catch(() => undefined)
    }
    this.#isSuspect = false
  }

  async #isAlive(): Promise<boolean> {
    const signal = AbortSignal.any([this.#over.signal, AbortSignal.timeout(SIGN_OF_LIFE_MS)])
    return this.#signs.request({ method: 'GET', path: '/healthz', headers: { host: this.#endpoint.host }, signal }).then(
      async ({ body }) => {
        await body.dump()
        return true
      },
      () => false,
    )
  }

  subscribe(operation: Operation, context: LinkContext<Who>, failure: (cause: unknown) => ExecutionResult): Attempt {
    const socket = this.#getSocket(context.caller)
    const events = new UnreadEvents(failure)
    let isBegun = false
    let notBegun: { cause: unknown } | undefined
    const subscription = context.isCut && randomHex(16)
    const complete = socket.client.subscribe<Record<string, unknown>>(toPayload(operation, context, subscription), {
      ...events.sink,
      next: (event) => {
        isBegun = true
        events.sink.next(event as ExecutionResult)
      },
      error: (error) => {
        const isRefused = REFUSALS.includes(readCode(error))
        if (!isBegun && !isRefused && (!socket.isConnected || readCode(error) === ORDERLY_CLOSE || isRefusal(error)))
          notBegun = { cause: error }
        events.sink.error(error)
      },
    })
    return {
      events,
      dispose() {
        if (subscription && socket.raw?.readyState === WebSocket.OPEN && context.isCut?.()) socket.raw.send(cutNote(subscription))
        complete()
      },
      get notBegun() {
        return notBegun
      },
    }
  }

  /** Running operations go on. Idle sockets close by themselves. */
  retire(): void {
    this.#over.abort()
    void this.#pool.close()
    void this.#signs.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort()
    await Promise.all([this.#pool.destroy(), this.#signs.destroy()])
  }

  #getSocket(caller: Who): Socket {
    const { authorization, socketKey, serviceHeaders } = this.#options
    const { origin, host } = this.#endpoint
    const key = socketKey(caller)
    const known = this.#sockets.get(key)
    if (known) return known
    let headers: Record<string, string> = {}
    const client = createClient({
      url: async () => {
        headers = { host, ...(await serviceHeaders?.()) }
        return `${origin.replace(/^http/, 'ws')}/graphql`
      },
      webSocketImpl: class extends WebSocket {
        constructor(address: string, protocols: string[]) {
          super(address, protocols, {
            headers,
            maxPayload: MAX_SERVICE_FRAME_BYTES,
            perMessageDeflate: false,
            handshakeTimeout: CONNECT_TIMEOUT_MS,
          })
        }
      },
      lazy: true,
      lazyCloseTimeout: IDLE_SOCKET_MS,
      // A repeated subscription would call the model a second time.
      retryAttempts: 0,
      connectionParams: async () => ({ authorization: await authorization(caller) }),
      on: {
        opened: (raw) => {
          socket.raw = raw as WebSocket
        },
        connected: () => {
          socket.isConnected = true
        },
        closed: () => {
          if (this.#sockets.get(key) === socket) this.#sockets.delete(key)
        },
      },
    })
    const socket: Socket = { client, isConnected: false }
    this.#sockets.set(key, socket)
    return socket
  }
}

function errorOf(cause: unknown, what: string): KisError {
  if (REFUSALS.includes(readCode(cause))) return new InvalidApiKey()
  // Of `JSON.stringify`: the stack has no room for the variables.
  if (cause instanceof RangeError) return new KisError('invalid_request', 'A variable is nested too deeply. Send a flatter one.', { cause })
  return new ServiceUnavailable(what, { cause })
}

function readCode(error: unknown): unknown {
  return (error as { readonly code?: unknown } | null)?.code
}

function toPayload({ query, variables, operationName }: Operation, { requestId }: LinkContext<unknown>, subscription: string | undefined) {
  return {
    query,
    ...(variables && { variables: { ...variables } }),
    ...(operationName && { operationName }),
    extensions: { requestId, ...(subscription && { subscription }) },
  }
}

/**
 * Gives the answer, or rejects with the signal's reason at once: a request that waits for a connection ignores the
 * signal.
 */
function orAborted<T>(asked: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const onAbort = () => reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  asked.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  return promise
}
