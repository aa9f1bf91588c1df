import type { ExecutionResult, GraphQLError } from 'graphql'
import { type Client, createClient } from 'graphql-ws'
import { Pool } from 'undici'
import { WebSocket } from 'ws'
import { endableIterator } from './endable-iterator.ts'
import { type Endpoint, Endpoints, type Turn } from './endpoints.ts'
import { InvalidApiKey, isAbort, ServiceUnavailable } from './errors.ts'
import type { Link, LinkContext, Operation } from './link.ts'
import { Lru } from './lru.ts'
import type { SharedClock } from './shared-clock.ts'
import { isRefusal, ORDERLY_CLOSE } from './socket-drain.ts'
import { UnreadEvents } from './unread-events.ts'

/** Operations of one process to one replica of another under way at once, over HTTP. A call of a slow model holds its connection. */
const MAX_CONNECTIONS = 1_024
/** A connection is made within this, or the replica counts as down. */
const CONNECT_TIMEOUT_MS = 2_000
/** An idle connection is closed by this side, before a server that drains closes it: no request meets a connection that is being closed. */
export const IDLE_CONNECTION_MS = 2_000
/** Longer than the longest model call; whoever calls has a tighter limit of its own. */
const ANSWER_TIMEOUT_MS = 900_000
/** An embedding answer of 2,048 vectors of 3,072 floats is 33 MB as base64. */
const MAX_ANSWER_BYTES = 48 * 1024 * 1024
/** Frames between services carry chat requests with images, 20 MiB, and files of speech: 25 MiB, which as base64 are 33.4 MiB. */
export const MAX_SERVICE_FRAME_BYTES = 36 * 1024 * 1024
/** An idle socket is closed after this; the next operation opens another. */
const IDLE_SOCKET_MS = 10_000
/** Sockets to one replica. */
const MAX_SOCKETS = 10_000

/** Close codes of a server that does not know the caller, or not any more. */
const REFUSALS: readonly unknown[] = [4401, 4403]
/** HTTP status of a caller whom the server does not take. */
const UNAUTHORIZED = 401
/** Codes of a connection that was not made: what was to go over it has not been sent. */
const NOT_CONNECTED: readonly unknown[] = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT']

export interface RemoteLinkOptions<Who> {
  /** Addresses of the replicas, like `http://127.0.0.1:4001`; operations go to their `/graphql`. A host name stands for all its addresses. */
  readonly urls: readonly string[]
  /** Named in errors. */
  readonly what: string
  /** Value of the `authorization` header, or null for none. Callers with equal keys share a socket, others never do. */
  authorization(caller: Who): Promise<string | null>
  socketKey(caller: Who): string
  /** Goes by the clock of the other side, as its answers show it. Default: none does. */
  readonly clock?: SharedClock
  /** Headers of every request, a socket's upgrade too, that say which service asks. Default: none. */
  serviceHeaders?(): Promise<Record<string, string>>
}

/**
 * A link to another service: HTTP keep-alive for queries and mutations, graphql-ws for subscriptions, each to the replica with the least under
 * way. What was not begun, because a replica is gone, starts or drains, goes to the next one; nothing else is ever repeated.
 */
export function remoteLink<Who>(options: RemoteLinkOptions<Who>): Link<Who> & AsyncDisposable {
  const { urls, what, authorization } = options
  const replicas = new Endpoints(urls, (endpoint) => new Replica(endpoint, options))
  const failure = (cause: unknown): ExecutionResult => {
    const refused = REFUSALS.includes(codeOf(cause))
    const { message, extensions } = refused ? new InvalidApiKey() : new ServiceUnavailable(what, { cause })
    return { errors: [{ message, extensions } as unknown as GraphQLError] }
  }

  return {
    async execute(operation, context) {
      let cause: unknown
      for await (const turn of replicas.turns()) {
        try {
          const { result, isMisdated } = await turn.connection.execute(operation, context, await authorization(context.caller))
          cause = result.errors
          if (isMisdated) continue
          if (!isRefusal(result.errors)) return result
          turn.fail()
        } catch (error) {
          if (context.signal.aborted && isAbort(error)) throw error
          cause = error
          if (!NOT_CONNECTED.includes(codeOf(error))) break
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
                return { done: false, value: failure(cause) }
              }
              if (isOver) break
              attempt = turn.connection.subscribe(operation, context, failure)
            }
            const event = await attempt.events.next()
            if (!attempt.notBegun) return event
            cause = attempt.notBegun.cause
            turn?.fail()
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
  /** Set with the last event when the replica has done nothing for the subscription, and why. */
  readonly notBegun: { readonly cause: unknown } | undefined
  dispose(): void
}

/** A socket, and whether its server has accepted the caller. */
interface Socket {
  readonly client: Client
  isConnected: boolean
}

class Replica<Who> implements AsyncDisposable {
  readonly #endpoint: Endpoint
  readonly #options: RemoteLinkOptions<Who>
  readonly #pool: Pool
  readonly #sockets = new Lru<string, Socket>(MAX_SOCKETS)

  constructor(endpoint: Endpoint, options: RemoteLinkOptions<Who>) {
    this.#endpoint = endpoint
    this.#options = options
    this.#pool = new Pool(endpoint.origin, {
      connections: MAX_CONNECTIONS,
      connect: { timeout: CONNECT_TIMEOUT_MS },
      keepAliveTimeout: IDLE_CONNECTION_MS,
      keepAliveMaxTimeout: IDLE_CONNECTION_MS,
      headersTimeout: ANSWER_TIMEOUT_MS,
      bodyTimeout: ANSWER_TIMEOUT_MS,
      maxResponseSize: MAX_ANSWER_BYTES,
    })
  }

  /** `isMisdated`: it was refused because this process's clock was wrong, which it no longer is. */
  async execute(
    operation: Operation,
    { requestId, signal }: LinkContext<unknown>,
    authorization: string | null,
  ): Promise<{ readonly result: ExecutionResult; readonly isMisdated: boolean }> {
    const sentAt = performance.now()
    const { body, headers, statusCode } = await this.#pool.request({
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
      signal,
    })
    const wasSet = this.#options.clock?.observe(new Date(String(headers.date)), sentAt) ?? false
    const result = JSON.parse(await body.text()) as ExecutionResult
    if (!result.data && !result.errors) throw new Error('not a GraphQL answer')
    return { result, isMisdated: wasSet && statusCode === UNAUTHORIZED }
  }

  subscribe(operation: Operation, context: LinkContext<Who>, failure: (cause: unknown) => ExecutionResult): Attempt {
    const socket = this.#socketOf(context.caller)
    const events = new UnreadEvents(failure)
    let isBegun = false
    let notBegun: { cause: unknown } | undefined
    const dispose = socket.client.subscribe<Record<string, unknown>>(payloadOf(operation, context), {
      ...events.sink,
      next: (event) => {
        isBegun = true
        events.sink.next(event as ExecutionResult)
      },
      error: (error) => {
        const isRefused = REFUSALS.includes(codeOf(error))
        if (!isBegun && !isRefused && (!socket.isConnected || codeOf(error) === ORDERLY_CLOSE || isRefusal(error)))
          notBegun = { cause: error }
        events.sink.error(error)
      },
    })
    return {
      events,
      dispose,
      get notBegun() {
        return notBegun
      },
    }
  }

  /** What is under way goes on; idle sockets close by themselves. */
  retire(): void {
    void this.#pool.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy()
  }

  #socketOf(caller: Who): Socket {
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
      // A repeated subscription would be a second call of a model.
      retryAttempts: 0,
      connectionParams: async () => ({ authorization: await authorization(caller) }),
      on: {
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

function codeOf(error: unknown): unknown {
  return (error as { readonly code?: unknown } | null)?.code
}

function payloadOf({ query, variables, operationName }: Operation, { requestId }: LinkContext<unknown>) {
  return {
    query,
    ...(variables && { variables: { ...variables } }),
    ...(operationName && { operationName }),
    extensions: { requestId },
  }
}
