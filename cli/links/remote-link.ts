import type { ExecutionResult, GraphQLError } from 'graphql'
import { type Client, createClient } from 'graphql-ws'
import { LRUCache } from 'lru-cache'
import { Pool } from 'undici'
import { WebSocket } from 'ws'
import { type ByteRequest, type ByteResponse, passedOn } from '../../subgraphs/common/bytes/byte-response.ts'
import { InvalidApiKey, isAbort, isNotHere, KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import {
  IDLE_CONNECTION_MS,
  type Link,
  type LinkContext,
  MAX_SERVICE_FRAME_BYTES,
  type Operation,
} from '../../subgraphs/common/link/link.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { cutNote } from '../../subgraphs/common/process/cut-operations.ts'
import { endableIterator } from '../../subgraphs/common/process/endable-iterator.ts'
import { randomHex } from '../../subgraphs/common/process/ids.ts'
import { isRefusal, ORDERLY_CLOSE } from '../../subgraphs/common/process/socket-drain.ts'
import { untilAborted } from '../../subgraphs/common/process/until-aborted.ts'
import { FACTS_HEADER } from '../../subgraphs/common/telemetry/request-facts.ts'
import { FACTS_EXTENSION } from '../../subgraphs/common/telemetry/socket-operation.ts'
import { noTelemetry, type Telemetry } from '../../subgraphs/common/telemetry/telemetry.ts'
import { type Endpoint, Endpoints, type ReplicaAttempt } from './endpoints.ts'
import { isRead, LONG_MS, responseTimeoutMs } from './response-timeout.ts'
import { UnreadEvents } from './unread-events.ts'

/** Concurrent HTTP operations of one process at one replica. A call of a slow model occupies its connection. */
const MAX_CONNECTIONS = 1_024
/** A replica that takes longer to connect counts as down. */
const CONNECT_TIMEOUT_MS = 2_000
/** How often a replica is pinged while a call waits for it, or while it is away. */
const PING_MS = 500
/**
 * The greatest age of the last ping at the start of an operation; an older one is repeated first. A ping says nothing
 * of connections that are older than its own: after a cut, only new ones pass.
 */
const MAX_PING_AGE_MS = 1_000
/**
 * Time limits of the two parts of a probe. A process that responds within both is slow, but not away. In the second
 * part it is also pinged over a new connection. If this process was paused meanwhile, it reads the first response then.
 * So calls that wait for a stopped process end within 5 s.
 */
const PONG_MS = 3_000
const LAST_PONG_MS = 1_000
/** Bytes of a response. An embedding response of 2,048 vectors of 3,072 floats is 33 MB as base64. */
const MAX_RESPONSE_BYTES = 48 * 1024 * 1024
/** An idle socket is closed after this time. The next operation opens another. */
const IDLE_SOCKET_MS = 10_000
/** The connection of pings outlives all others that are idle. */
const PINGS_IDLE_MS = 1.5 * IDLE_SOCKET_MS
/** A socket without a ping for this long is pinged, so that no router drops a stream that waits for its next event. */
const KEEP_ALIVE_MS = 10_000
/** Sockets to one replica. */
const MAX_SOCKETS = 10_000

/** The code with which graphql-ws reports that this side terminated a socket. */
const TERMINATED = 4499
/** Close codes of a server that does not, or no longer, accept the caller. */
const REFUSALS: readonly unknown[] = [4401, 4403]
/** HTTP status of a range without bytes. The client handles it. */
const UNSATISFIABLE = 416
/** Longest wait for the next bytes of a download. It does not count while the reader is slower. */
const READ_MS = 30_000
/** Codes of a failed connection attempt, so nothing was sent. */
const NOT_CONNECTED: readonly unknown[] = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT']

/** Codes of a machine that does not respond at all. */
const SILENCE: readonly unknown[] = ['EHOSTUNREACH', 'ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT']

interface RemoteLinkOptions<Who> {
  /**
   * Addresses of the replicas, such as `http://127.0.0.1:4001`. Operations go to their `/graphql`. A host name stands
   * for all its addresses.
   */
  readonly urls: readonly string[]
  /** The name of the service in errors. */
  readonly what: string
  /**
   * Returns the value of the `authorization` header; null: none. Callers with equal `socketKey` share a socket, others
   * never do.
   */
  authorization(caller: Who): Promise<string | null>
  socketKey(caller: Who): string
  /** A factor for the response timeouts, compared with those of a subgraph. Default: 1. */
  readonly patience?: number
  /** Headers of every request and WebSocket upgrade that identify this service. Default: none. */
  serviceHeaders?(): Promise<Record<string, string>>
  /** Receives what the other side reports of each request, and forwards the trace. Default: no telemetry. */
  readonly telemetry?: Pick<Telemetry, 'requests' | 'tracer'>
}

/** A link to another process, which also reports whether that process can serve. */
export interface RemoteLink<Who> extends Link<Who>, AsyncDisposable {
  /**
   * Returns the problems in `/readyz` of the other side, of the replica with the fewest; empty: it is ready. Null: no
   * replica responds within the time, or all are stopping.
   */
  problems(withinMs: number): Promise<readonly string[] | null>
  /**
   * Returns the time on the other side, to the second. The other side knows it once its stores are open.
   * @throws {ServiceUnavailable} it does not respond, or is not open yet
   */
  readClock(context: LinkContext<Who>): Promise<Date>
}

/**
 * Creates a link to another service: HTTP keep-alive for queries and mutations, graphql-ws for subscriptions, each to
 * the replica with the least work. A replica is pinged while anything waits for it. One that does not respond gets no
 * operations until it does, and what waits for it ends. An operation moves to the next replica if it was certainly not
 * started, because a replica is gone, starting or draining; if it is a read without a response; or if it is a
 * subscription to something that this replica does not have. Nothing else is ever repeated.
 */
export function remoteLink<Who>(options: RemoteLinkOptions<Who>): RemoteLink<Who> {
  const { urls, what, authorization } = options
  const replicas = new Endpoints(urls, (endpoint) => new Replica(endpoint, options))
  const failure = (cause: unknown): ExecutionResult => {
    const { message, extensions } = errorOf(cause, what)
    // A result is plain JSON, even if this process created it.
    return { errors: [{ message, extensions } as unknown as GraphQLError] }
  }

  const send = async (operation: Operation, context: LinkContext<Who>): Promise<LinkResponse> => {
    let cause: unknown
    for await (const attempt of replicas.attempts()) {
      try {
        if (attempt.connection.isAway) continue
        const response = await attempt.connection.execute(operation, context, await authorization(context.caller))
        if (!isRefusal(response.result.errors)) return response
        cause = response.result.errors
        attempt.fail()
      } catch (error) {
        if (context.signal.aborted && isAbort(error)) throw error
        if (error instanceof RangeError) throw errorOf(error, what)
        cause = error
        if (!NOT_CONNECTED.includes(readCode(error)) && (!isRead(operation.query) || isLate(error))) break
        attempt.fail()
      } finally {
        attempt.end()
      }
    }
    throw errorOf(cause, what)
  }

  return {
    execute: async (operation, context) => (await send(operation, context)).result,

    readClock: async (context) => new Date((await send({ query: 'query Health { __typename }' }, context)).date),

    subscribe(operation, context) {
      const attempts = replicas.attempts()
      let replicaAttempt: ReplicaAttempt<Replica<Who>> | undefined
      let attempt: Attempt | undefined
      let cause: unknown
      /** The results of the replicas that do not have it, and the failures of those that could not be called. */
      const denials = new Map<Replica<Who>, ExecutionResult>()
      const missed = new Set<Replica<Who>>()
      const lastResult = () => (missed.size === 0 && denials.values().next().value) || failure(cause)
      let isOver = false
      const endAttempt = () => {
        attempt?.dispose()
        replicaAttempt?.end()
        attempt = replicaAttempt = undefined
      }
      return endableIterator<ExecutionResult>(
        async () => {
          while (!isOver) {
            if (!attempt) {
              replicaAttempt = (await attempts.next()).value ?? undefined
              if (!replicaAttempt) {
                isOver = true
                return { done: false, value: lastResult() }
              }
              if (isOver) break
              if (replicaAttempt.connection.isAway) missed.add(replicaAttempt.connection)
              if (replicaAttempt.connection.isAway || denials.has(replicaAttempt.connection)) {
                endAttempt()
                continue
              }
              attempt = replicaAttempt.connection.subscribe(operation, context, failure)
            }
            const event = await attempt.events.next()
            const replica = replicaAttempt?.connection
            if (replica && !event.done && isNotHere(event.value.errors)) {
              denials.set(replica, event.value)
              missed.delete(replica)
            } else if (!attempt?.notBegun) {
              return event
            } else {
              cause = attempt.notBegun.cause
              if (replica) missed.add(replica)
              replicaAttempt?.fail()
            }
            endAttempt()
          }
          endAttempt()
          return { done: true, value: undefined }
        },
        () => {
          isOver = true
          endAttempt()
        },
        context.signal,
      )
    },

    async openBytes(request, context) {
      let cause: unknown
      for await (const attempt of replicas.attempts()) {
        try {
          if (attempt.connection.isAway) continue
          return await attempt.connection.openBytes(request, context, await authorization(context.caller))
        } catch (error) {
          if (context.signal.aborted || (error instanceof KisError && !error.shouldRetry)) throw error
          cause = error
          attempt.fail()
        } finally {
          attempt.end()
        }
      }
      throw cause instanceof KisError ? cause : errorOf(cause, what)
    },

    async problems(withinMs) {
      const signal = AbortSignal.timeout(withinMs)
      const said = await Promise.all((await replicas.all()).map((replica) => replica.problems(signal)))
      return said.filter((found) => found !== null).sort((a, b) => a.length - b.length)[0] ?? null
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

/** The result of an operation, and the time on the other side. */
interface LinkResponse {
  readonly result: ExecutionResult
  readonly date: string
}

/** The replica does not respond to pings, or the connections of its calls are dead. */
class Silent extends Error {
  constructor() {
    super('no response to a ping')
  }
}

class Replica<Who> implements AsyncDisposable {
  readonly #endpoint: Endpoint
  readonly #options: RemoteLinkOptions<Who>
  readonly #pool: Pool
  /** Downloads have a pool of their own, because stored bytes may be as long as any file. */
  readonly #downloads: Pool
  /** Pings have a pool of their own: the other connections may all be waiting for models. */
  readonly #pings: Pool
  readonly #sockets = new LRUCache<string, Socket>({ max: MAX_SOCKETS })
  readonly #over = new AbortController()
  readonly #telemetry: Pick<Telemetry, 'requests' | 'tracer'>
  /** Callbacks of the calls that wait for the replica. Each is called when no response can come any more. */
  readonly #waiting = new Set<() => void>()
  #isWatched = false
  /** When the last ping ended, in milliseconds of `performance.now()`. */
  #pingedAtMs = Number.NEGATIVE_INFINITY
  #isRetired = false
  /** True while the replica does not respond to pings. */
  isAway = false

  constructor(endpoint: Endpoint, options: RemoteLinkOptions<Who>) {
    this.#endpoint = endpoint
    this.#options = options
    this.#telemetry = options.telemetry ?? noTelemetry
    const connections = {
      connections: MAX_CONNECTIONS,
      connect: { timeout: CONNECT_TIMEOUT_MS },
      keepAliveTimeout: IDLE_CONNECTION_MS,
      keepAliveMaxTimeout: IDLE_CONNECTION_MS,
    }
    this.#pool = new Pool(endpoint.origin, {
      ...connections,
      headersTimeout: LONG_MS,
      bodyTimeout: LONG_MS,
      maxResponseSize: MAX_RESPONSE_BYTES,
    })
    this.#downloads = new Pool(endpoint.origin, { ...connections, headersTimeout: READ_MS, bodyTimeout: READ_MS })
    this.#pings = new Pool(endpoint.origin, {
      connections: 2,
      connect: { timeout: CONNECT_TIMEOUT_MS },
      keepAliveTimeout: PINGS_IDLE_MS,
      keepAliveMaxTimeout: PINGS_IDLE_MS,
    })
  }

  async execute(operation: Operation, { requestId, signal }: LinkContext<unknown>, authorization: string | null): Promise<LinkResponse> {
    const traceparent = this.#telemetry.tracer.traceparent()
    const headers = {
      host: this.#endpoint.host,
      'content-type': 'application/json',
      'x-request-id': requestId,
      ...(authorization && { authorization }),
      ...(traceparent && { traceparent }),
      ...(await this.#options.serviceHeaders?.()),
    }
    const body = JSON.stringify(operation)
    const withinMs = responseTimeoutMs(operation.query) * (this.#options.patience ?? 1)
    return this.#waitFor({ signal, withinMs }, async (its) => {
      const response = await this.#pool.request({ method: 'POST', path: '/graphql', headers, body, signal: its })
      this.#telemetry.requests.merge(requestId, response.headers[FACTS_HEADER])
      const result = (await response.body.json()) as ExecutionResult
      if (!result.data && !result.errors) throw new Error('not a GraphQL response')
      return { result, date: String(response.headers.date) }
    })
  }

  /** @throws {KisError} the replica refuses the request */
  async openBytes(
    { path, method, headers }: ByteRequest,
    context: LinkContext<unknown>,
    authorization: string | null,
  ): Promise<ByteResponse> {
    const { requestId, signal } = context
    const all = {
      ...headers,
      host: this.#endpoint.host,
      'x-request-id': requestId,
      ...(authorization && { authorization }),
      ...(await this.#options.serviceHeaders?.()),
    }
    const lost = new AbortController()
    const release = this.#enter(() => lost.abort(new Silent()))
    try {
      const ends = AbortSignal.any([signal, lost.signal])
      const pending = this.#downloads.request({ path, method, headers: all, signal: ends })
      const { statusCode, headers: its, body } = await untilAborted(pending, ends)
      if (statusCode >= 400 && statusCode !== UNSATISFIABLE) {
        const { errors } = (await body.json()) as Pick<ExecutionResult, 'errors'>
        throw KisError.fromGraphQL(errors![0]!)
      }
      body.once('close', release)
      return passedOn(statusCode, its, body)
    } catch (error) {
      release()
      throw error
    }
  }

  /**
   * Runs the work until the signal aborts, the time is over or the replica is silent. A request that waits for a
   * connection does not end by its own signal. The listener and the timer end with the work: `AbortSignal.any` and
   * `AbortSignal.timeout` would stay and cost garbage collections.
   */
  async #waitFor<T>(
    { signal, withinMs }: { readonly signal: AbortSignal; readonly withinMs: number },
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted()
    const ends = new AbortController()
    const endBySignal = () => ends.abort(signal.reason)
    signal.addEventListener('abort', endBySignal)
    const timer = setTimeout(() => ends.abort(new DOMException('The replica did not respond in time.', 'TimeoutError')), withinMs)
    const release = this.#enter(() => ends.abort(new Silent()))
    try {
      return await untilAborted(work(ends.signal), ends.signal)
    } finally {
      release()
      clearTimeout(timer)
      signal.removeEventListener('abort', endBySignal)
    }
  }

  /** Has the replica pinged until the returned function is called. */
  #enter(whenLost: () => void): () => void {
    this.#waiting.add(whenLost)
    void this.#watch()
    return () => void this.#waiting.delete(whenLost)
  }

  /** Pings while anything waits for the replica, or it is away. */
  async #watch(): Promise<void> {
    if (this.#isWatched) return
    this.#isWatched = true
    let isDue = performance.now() - this.#pingedAtMs > MAX_PING_AGE_MS
    for (;;) {
      if (!isDue) await systemClock.sleep(PING_MS, this.#over.signal).catch(() => undefined)
      isDue = false
      const isWanted = this.#waiting.size > 0 || (this.isAway && !this.#isRetired)
      if (!isWanted || this.#over.signal.aborted) break
      const sign = await this.#probe()
      this.#pingedAtMs = performance.now()
      this.isAway = sign === 'away'
      if (sign !== 'alive') this.#terminate()
    }
    this.#isWatched = false
    if (this.#isRetired) void this.#pings.close()
  }

  /** Ends the waiting calls, and the idle sockets, which may be dead. */
  #terminate(): void {
    for (const end of [...this.#waiting]) end()
    for (const { client } of [...this.#sockets.values()]) client.terminate()
  }

  /** Returns `cut off` when new connections work and earlier ones are dead. */
  async #probe(): Promise<'alive' | 'cut off' | 'away'> {
    const late = new AbortController()
    const signal = AbortSignal.any([this.#over.signal, late.signal])
    const first = this.#isResponsive(signal)
    if (await Promise.race([first, systemClock.sleep(PONG_MS, signal).catch(() => true)])) {
      late.abort()
      return 'alive'
    }
    const timer = setTimeout(() => late.abort(), LAST_PONG_MS)
    const [isAlive, passes] = await Promise.all([first, this.#isResponsive(signal)])
    clearTimeout(timer)
    return isAlive ? 'alive' : passes ? 'cut off' : 'away'
  }

  /**
   * Whether the replica is alive. A refused or reset connection counts as a response: a draining process accepts none,
   * and a dead one resets those it had.
   */
  async #isResponsive(signal: AbortSignal): Promise<boolean> {
    try {
      const ping = this.#pings.request({ method: 'GET', path: '/healthz', headers: { host: this.#endpoint.host }, signal })
      await (await untilAborted(ping, signal)).body.dump()
      return true
    } catch (error) {
      return !signal.aborted && !SILENCE.includes(readCode(error))
    }
  }

  /** Returns the problems; null: the replica does not respond, or is stopping. */
  async problems(signal: AbortSignal): Promise<readonly string[] | null> {
    if (this.isAway) return null
    try {
      const pending = this.#pool.request({ method: 'GET', path: '/readyz', headers: { host: this.#endpoint.host }, signal })
      const { body, statusCode } = await untilAborted(pending, signal)
      const { problems } = (await body.json()) as { readonly problems: readonly string[] }
      return statusCode === 200 || problems.length > 0 ? problems : null
    } catch {
      return null
    }
  }

  subscribe(operation: Operation, context: LinkContext<Who>, failure: (cause: unknown) => ExecutionResult): Attempt {
    const socket = this.#getSocket(context.caller)
    const events = new UnreadEvents(failure)
    let isBegun = false
    let notBegun: { cause: unknown } | undefined
    const subscription = randomHex(16)
    const release = this.#enter(() => undefined)
    const payload = toPayload(operation, context, subscription, this.#telemetry.tracer.traceparent())
    const complete = socket.client.subscribe<Record<string, unknown>>(payload, {
      ...events.sink,
      next: (event) => {
        isBegun = true
        events.sink.next(this.#heard(event as ExecutionResult, context))
      },
      error: (error) => {
        const isRefused = REFUSALS.includes(readCode(error))
        if (!isBegun && !isRefused && (!socket.isConnected || readCode(error) === ORDERLY_CLOSE || isRefusal(error)))
          notBegun = { cause: error }
        release()
        events.sink.error(error)
      },
      complete: () => {
        release()
        events.sink.complete()
      },
    })
    return {
      events,
      dispose() {
        release()
        if (socket.raw?.readyState === WebSocket.OPEN && context.isCut?.()) socket.raw.send(cutNote(subscription))
        complete()
      },
      get notBegun() {
        return notBegun
      },
    }
  }

  /** Reports what the other side says of the request, and returns the result without it. */
  #heard(event: ExecutionResult, { requestId }: LinkContext<unknown>): ExecutionResult {
    const { [FACTS_EXTENSION]: facts, ...extensions } = event.extensions ?? {}
    if (facts === undefined) return event
    this.#telemetry.requests.merge(requestId, facts)
    const { extensions: _merged, ...result } = event
    return Object.keys(extensions).length > 0 ? { ...result, extensions } : result
  }

  /** Running operations continue. Idle sockets close by themselves. */
  retire(): void {
    this.#isRetired = true
    void this.#pool.close()
    void this.#downloads.close()
    if (!this.#isWatched) void this.#pings.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort()
    await Promise.all([this.#pool, this.#downloads, this.#pings].map((each) => each.destroy()))
  }

  #getSocket(caller: Who): Socket {
    const { authorization, socketKey, serviceHeaders } = this.#options
    const { origin, host } = this.#endpoint
    const key = socketKey(caller)
    const known = this.#sockets.get(key)
    if (known) return known
    let headers: Record<string, string> = {}
    let unanswered: NodeJS.Timeout | undefined
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
      keepAlive: KEEP_ALIVE_MS,
      connectionParams: async () => ({ authorization: await authorization(caller) }),
      on: {
        opened: (raw) => {
          socket.raw = raw as WebSocket
        },
        connected: () => {
          socket.isConnected = true
        },
        ping: (isReceived) => {
          if (!isReceived) unanswered = setTimeout(() => client.terminate(), PONG_MS + LAST_PONG_MS)
        },
        pong: (isReceived) => {
          if (isReceived) clearTimeout(unanswered)
        },
        closed: () => {
          clearTimeout(unanswered)
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
  // `JSON.stringify` overflowed the stack on the variables.
  if (cause instanceof RangeError) return new KisError('invalid_request', 'A variable is nested too deeply. Send a flatter one.', { cause })
  const isSilent = cause instanceof Silent || readCode(cause) === TERMINATED
  return new ServiceUnavailable(what, { cause, ...(isSilent && { why: 'it sends no heartbeat' }) })
}

/** Whether no response came within the time of its operation. */
function isLate(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError'
}

function readCode(error: unknown): unknown {
  return (error as { readonly code?: unknown } | null)?.code
}

function toPayload(
  { query, variables, operationName }: Operation,
  { requestId }: LinkContext<unknown>,
  subscription: string,
  traceparent: string | undefined,
) {
  return {
    query,
    ...(variables && { variables: { ...variables } }),
    ...(operationName && { operationName }),
    extensions: { requestId, subscription, ...(traceparent && { traceparent }) },
  }
}
