import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ExecutionArgs, GraphQLError } from 'graphql'
import { type Context, handleProtocols, makeServer, type SubscribePayload } from 'graphql-ws'
import { type RawData, type ServerOptions, type WebSocket, WebSocketServer } from 'ws'
import { KisError } from '../subgraphs/common/errors.ts'
import { isSessionToken } from '../subgraphs/common/identity/credentials.ts'
import type { Clock } from '../subgraphs/common/process/clock.ts'
import { CutOperations, readSubscription } from '../subgraphs/common/process/cut-operations.ts'
import type { IdSource } from '../subgraphs/common/process/ids.ts'
import type { Log } from '../subgraphs/common/process/log.ts'
import { EndedByRestart, ORDERLY_CLOSE, refusal, SocketDrain } from '../subgraphs/common/process/socket-drain.ts'
import type { LoadShedder } from '../subgraphs/common/server/admission/load-shedder.ts'
import type { Drainable } from '../subgraphs/common/server/listen.ts'
import { refuseUpgrade, UnauthenticatedSockets } from '../subgraphs/common/server/unauthenticated-sockets.ts'
import { clientAddress } from '../subgraphs/common/sessions/client-address.ts'
import { sessionOfSocket } from '../subgraphs/common/sessions/session-cookie.ts'
import { SocketOperation } from '../subgraphs/common/telemetry/socket-operation.ts'
import type { Telemetry } from '../subgraphs/common/telemetry/telemetry.ts'
import type { Prepared } from './documents.ts'
import type { Federation } from './federation/federation.ts'
import { type Authenticator, isRefusal } from './keys/authenticate.ts'
import { type Operations, type SubscriptionContext, single } from './operations.ts'
import type { PersistedOperations } from './persisted-operations.ts'
import { chooseRequestId } from './request-id.ts'
import { chooseCredentials } from './sessions/credentials.ts'
import { type Connection, FULL_RETRY_MS, messageRate, PUBLIC_SOCKETS, SERVICE_SOCKETS, type SocketRegistry } from './socket-registry.ts'
import { runOnSocket } from './socket-transport.ts'

/** A client that sends nothing for this long after connecting is disconnected. */
const INIT_TIMEOUT_MS = 3_000
/** How long a client has to acknowledge a close frame before it is disconnected. */
const CLOSE_TIMEOUT_MS = 1_000
/** How often open sockets are checked: is the key still valid, does the client read? */
const POLL_MS = 1_000
/**
 * A client that leaves more than this unread for this long is disconnected. Each operation waits until its last message
 * is sent, so this value limits the memory.
 */
const MAX_UNREAD_BYTES = 256 * 1024
const MAX_UNREAD_MS = 10_000
/** Sockets of this process, with and without a key. The 1,000 above the limit are for sockets without a key. */
const MAX_SOCKETS = PUBLIC_SOCKETS.sockets + 1_000

/** After this code clients of graphql-ws reconnect, each time later. After its own 4429 they give up. */
const TRY_AGAIN = 1013
/** After this code clients of graphql-ws give up. After its own 4403 they reconnect. */
const UNAUTHORIZED = 4401

/** Close codes. Clients of graphql-ws reconnect after all of them but `UNAUTHORIZED`. */
const CLOSE = {
  goingAway: [ORDERLY_CLOSE, 'Going away'],
  tryAgainLater: [TRY_AGAIN, 'Try again later'],
  unauthorized: [UNAUTHORIZED, 'Unauthorized'],
  refused: [UNAUTHORIZED, 'The key is not valid'],
  sessionEnded: [UNAUTHORIZED, 'The session has ended'],
  suspended: [UNAUTHORIZED, 'The organization is suspended'],
  tooSlow: [4413, 'Slow consumer'],
  tooManyMessages: [TRY_AGAIN, 'Too many messages'],
  tooManySockets: [TRY_AGAIN, 'Too many sockets of this key or organization'],
} as const

interface SocketParts {
  readonly operations: Operations
  readonly persisted: PersistedOperations
  readonly federation: Federation
  readonly authenticator: Authenticator
  readonly loadShedder: Pick<LoadShedder, 'enter'>
  readonly clock: Clock
  readonly ids: IdSource
  readonly log: Log
  readonly telemetry: Telemetry
}

/** The state of one socket. `connection` is set once its key is accepted. */
interface Extra {
  readonly socket: WebSocket
  readonly request: IncomingMessage
  readonly cuts: CutOperations
  connection?: Connection
}
type SocketContext = Context<Record<string, unknown>, Extra>

interface Call {
  readonly prepared: Prepared
  readonly context: SubscriptionContext
  readonly end: () => void
  readonly socketOperation: SocketOperation
}

interface Sockets extends AsyncDisposable, Drainable {
  /** Takes a connection over from the HTTP server. */
  upgrade(request: IncomingMessage, connection: Duplex, head: Buffer): void
}

/** Serves queries, mutations and subscriptions by graphql-ws (`graphql-transport-ws`). */
export function serveSockets(parts: SocketParts, registry: SocketRegistry): Sockets {
  const { operations, clock, log } = parts
  const { limits } = registry
  const drain = new SocketDrain()
  const unauthenticated = new UnauthenticatedSockets()
  // `closeTimeout` is missing in @types/ws 8.18.
  const options: ServerOptions & { closeTimeout: number } = {
    noServer: true,
    maxPayload: limits.maxFrameBytes,
    perMessageDeflate: false,
    closeTimeout: CLOSE_TIMEOUT_MS,
    handleProtocols,
  }
  const wss = new WebSocketServer(options)
  const server = makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: INIT_TIMEOUT_MS,
    onConnect: connector(parts, registry, drain, unauthenticated),
    onClose: (context) => {
      const { connection } = context.extra
      drain.closed(context)
      if (connection) registry.delete(connection)
    },
    onSubscribe: beginner(parts, registry, drain, limits === SERVICE_SOCKETS),
    // A single result is an iterator, too: graphql-ws reports a cancellation by the client only to an iterator.
    execute: ({ contextValue, variableValues }) => {
      const { prepared, context, end, socketOperation } = contextValue as Call
      const result = single(() => operations.execute(prepared, variableValues ?? {}, context), end)
      return socketOperation.results(drain.results(result, () => operations.failed(new EndedByRestart(), context.requestId)))
    },
    subscribe: ({ contextValue, variableValues }) => {
      const { prepared, context, end, socketOperation } = contextValue as Call
      const events = operations.subscribe(prepared, variableValues ?? {}, context, end)
      return socketOperation.results(drain.results(events, () => operations.failed(new EndedByRestart(), context.requestId)))
    },
  })
  const stopping = new AbortController()
  const watching = watch(parts, registry, stopping.signal)

  return {
    upgrade(request, connection, head) {
      if (wss.clients.size >= MAX_SOCKETS || unauthenticated.isFull) return refuseUpgrade(connection, '503 Service Unavailable')
      wss.handleUpgrade(request, connection, head, (socket) => {
        unauthenticated.enter(connection)
        const extra: Extra = { socket, request, cuts: new CutOperations(socket) }
        limitMessages(extra, registry, clock)
        runOnSocket(server, socket, extra, log)
      })
    },
    drain: () => drain.drain(),
    end() {
      for (const connection of registry.connections) connection.isLost ??= true
      drain.end()
    },
    async [Symbol.asyncDispose]() {
      if (stopping.signal.aborted) return
      stopping.abort()
      for (const connection of registry.connections) registry.cut(connection, ...CLOSE.goingAway)
      for (const socket of wss.clients) socket.close(...CLOSE.goingAway)
      await new Promise<void>((resolve) => wss.close(() => resolve()))
      await watching
    },
  }
}

function closeFor({ code }: KisError, credentials = ''): readonly [number, string] {
  if (code === 'organization_suspended') return CLOSE.suspended
  return isSessionToken(credentials) ? CLOSE.sessionEnded : CLOSE.refused
}

type OnConnect = (context: SocketContext) => Promise<boolean>

function connector(
  { authenticator, ids }: SocketParts,
  registry: SocketRegistry,
  drain: SocketDrain,
  unauthenticated: UnauthenticatedSockets,
): OnConnect {
  return async (context) => {
    const { extra, connectionParams } = context
    const { socket, request } = extra
    const refuse = ([code, reason]: readonly [number, string]) => {
      socket.close(code, reason)
      return false
    }
    const sent = connectionParams?.authorization ?? connectionParams?.Authorization ?? request.headers.authorization
    if (sent !== undefined && typeof sent !== 'string') return refuse(CLOSE.unauthorized)
    try {
      const credentials = chooseCredentials(sent, sessionOfSocket(request.headers), registry.limits === SERVICE_SOCKETS)
      if (credentials === '') return refuse(CLOSE.unauthorized)
      const owner = await authenticator.getPrincipal(credentials, ids('req'))
      // If the client has left meanwhile, nothing else would remove the connection from the registry.
      if (socket.readyState !== socket.OPEN) return false
      if (!drain.isAccepting) return refuse(CLOSE.goingAway)
      const connection = registry.add(socket, credentials, owner)
      if (!connection) return refuse(CLOSE.tooManySockets)
      extra.connection = connection
      unauthenticated.know(request.socket)
      drain.opened(context)
      return true
    } catch (error) {
      return refuse(isRefusal(error) ? closeFor(error) : CLOSE.tryAgainLater)
    }
  }
}

type OnSubscribe = (context: SocketContext, id: string, payload: SubscribePayload) => Promise<ExecutionArgs | readonly GraphQLError[]>

function beginner(parts: SocketParts, registry: SocketRegistry, drain: SocketDrain, isService: boolean): OnSubscribe {
  const { authenticator, operations, persisted, federation, loadShedder, ids, telemetry } = parts
  return async ({ extra }, _id, payload) => {
    const { operationName, variables, extensions } = payload
    const connection = extra.connection!
    const requestId = chooseRequestId(extensions?.requestId, isService, ids)
    const subscription = readSubscription(extensions)
    if (!drain.isAccepting) return refusal()
    const { traceparent } = extensions ?? {}
    const socketOperation = new SocketOperation(telemetry, { requestId, name: 'GraphQL over a socket', isService, traceparent })
    const operation = registry.start(connection)
    if (!operation) {
      const tooMany = new KisError(
        'rate_limit_exceeded',
        'This key has reached its limit of concurrent operations over sockets and event streams. Wait until one of them ends.',
        { retryAfterMs: FULL_RETRY_MS },
      )
      const { errors } = operations.failed(tooMany, requestId)
      socketOperation.end()
      return errors!
    }
    let release = () => {}
    const end = () => {
      release()
      connection.operations.delete(operation)
      operation.abort()
    }
    try {
      await new Promise<void>((start) => {
        release = loadShedder.enter(connection.credentials, clientAddress(extra.request), start)
      })
      const caller = await socketOperation.within(() => authenticator.getPrincipal(connection.credentials, requestId))
      const prepared = operations.prepare(persisted.findText(payload, caller), operationName ?? undefined, requestId)
      if ('document' in prepared) {
        persisted.requireOpen(prepared.hash, caller)
        const { credentials } = connection
        const isCut = () => connection.isLost ?? extra.cuts.has(subscription)
        const call: Call = { prepared, context: { caller, requestId, signal: operation.signal, credentials, isCut }, end, socketOperation }
        return {
          schema: federation.schema,
          document: prepared.document,
          operationName: operationName ?? null,
          variableValues: variables ?? {},
          contextValue: call,
        }
      }
      end()
      socketOperation.end()
      return prepared.errors!
    } catch (error) {
      end()
      const { errors } = operations.failed(error, requestId)
      socketOperation.end()
      return errors!
    }
  }
}

function limitMessages(extra: Extra, registry: SocketRegistry, clock: Clock): void {
  const { socket } = extra
  const isWithinRate = messageRate(registry.limits, clock)
  socket.on('message', (data) => {
    const { connection } = extra
    const bytes = countBytes(data)
    const isWithin = isWithinRate(bytes) && (!connection || registry.consumeBytes(connection, bytes, clock))
    if (isWithin || socket.readyState !== socket.OPEN) return
    socket.close(...CLOSE.tooManyMessages)
    socket.pause()
  })
}

function countBytes(data: RawData): number {
  return Array.isArray(data) ? data.reduce((sum, piece) => sum + piece.length, 0) : data.byteLength
}

/** Checks the open sockets until the signal aborts. */
async function watch({ authenticator, clock, ids }: SocketParts, registry: SocketRegistry, signal: AbortSignal): Promise<void> {
  const judge = (connection: Connection) =>
    authenticator.getPrincipal(connection.credentials, ids('req')).catch((error) => {
      // When billing does not respond, the socket stays open. Its next operation is refused anyway.
      if (isRefusal(error)) registry.close(connection, ...closeFor(error, connection.credentials))
    })
  while (!signal.aborted) {
    await clock.sleep(POLL_MS, signal).catch(() => undefined)
    const now = clock.now().getTime()
    for (const connection of registry.connections) {
      connection.slowSince = connection.socket.bufferedAmount > MAX_UNREAD_BYTES ? (connection.slowSince ?? now) : undefined
      if (connection.slowSince !== undefined && now - connection.slowSince >= MAX_UNREAD_MS) registry.cut(connection, ...CLOSE.tooSlow)
      else void judge(connection)
    }
  }
}
