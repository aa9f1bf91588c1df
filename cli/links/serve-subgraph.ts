import fastify, { type FastifyInstance } from 'fastify'
import { type ExecutionResult, GraphQLError, parse } from 'graphql'
import { useServer } from 'graphql-ws/use/ws'
import mercurius from 'mercurius'
import { type WebSocket, WebSocketServer } from 'ws'
import { ERRORS } from '../../schema/errors.ts'
import { serveBytes } from '../../subgraphs/common/bytes/byte-route.ts'
import { KisError, REQUEST_OVER, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import { type Link, type LinkContext, MAX_SERVICE_FRAME_BYTES, type Operation } from '../../subgraphs/common/link/link.ts'
import type { Subgraph } from '../../subgraphs/common/link/subgraph.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import { CutOperations, readSubscription } from '../../subgraphs/common/process/cut-operations.ts'
import { changedSteps } from '../../subgraphs/common/process/endable-iterator.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { EndedByRestart, ORDERLY_CLOSE, refusal, SocketDrain } from '../../subgraphs/common/process/socket-drain.ts'
import { LargeBodies } from '../../subgraphs/common/server/admission/large-bodies.ts'
import { healthRoutes } from '../../subgraphs/common/server/health.ts'
import { APP_OPTIONS, listen } from '../../subgraphs/common/server/listen.ts'
import { respondToMalformedRequest } from '../../subgraphs/common/server/malformed-requests.ts'
import type { QueueWatch } from '../../subgraphs/common/server/queue-watch.ts'
import { refuseUpgrade, UnauthenticatedSockets } from '../../subgraphs/common/server/unauthenticated-sockets.ts'
import { FACTS_HEADER } from '../../subgraphs/common/telemetry/request-facts.ts'
import { SocketOperation } from '../../subgraphs/common/telemetry/socket-operation.ts'
import { noTelemetry, type Telemetry } from '../../subgraphs/common/telemetry/telemetry.ts'
import { formatError, formatThrown, graphqlBody } from './graphql-errors.ts'
import { localLink, MAX_TEXT_CHARACTERS } from './local-link.ts'
import { nameOperation, observedLink } from './observed-link.ts'
import type { PrincipalTokens } from './principal-token.ts'

/** Uploads pass through here: 25 MiB as base64 and a little more. Plans may allow larger files. */
const MAX_BODY_BYTES = 48 * 1024 * 1024
const PATH = '/graphql'
/** Parsed operations. The gateway's plans and the services' constants are fewer; each has at most a megabyte. */
const MAX_DOCUMENTS = 256
/** A client that sends nothing for this long after connecting is disconnected. */
const INIT_TIMEOUT_MS = 3_000

export interface ServeOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  readonly clock: Clock
  readonly drainMs: number
  /** Aborted once the process is to end: `/readyz` says so. */
  readonly stopping?: AbortSignal
  /** Until it resolves, every operation is refused, for another replica to take it. Default: none is refused. */
  readonly opened?: Promise<unknown>
  /** For `/readyz`. Default: the problems of the subgraph. */
  readonly problems?: () => Promise<readonly string[]>
  readonly tokens: PrincipalTokens
  /** Gets the running operations. Default: nobody does. */
  readonly watch?: Pick<QueueWatch, 'start'>
  readonly log: Log
  /** Default: nothing is told. */
  readonly telemetry?: Telemetry
}

/**
 * Serves a subgraph to other processes: queries and mutations over HTTP by Mercurius, subscriptions by graphql-ws's own
 * server, over a local link. (Mercurius would run a subscription to its end when its client leaves while `subscribe` is
 * pending, and a model would continue billing.) Only signed callers are served. Disposing drains for `drainMs`.
 */
export async function serveSubgraph(
  subgraph: Subgraph,
  {
    host,
    port,
    clock,
    drainMs,
    stopping,
    opened,
    problems = () => subgraph.problems(),
    tokens,
    watch,
    log,
    telemetry = noTelemetry,
  }: ServeOptions,
): Promise<{ readonly url: string } & AsyncDisposable> {
  const app = fastify({
    ...APP_OPTIONS,
    // By mercurius' schema of answers, the places of lists in paths would become texts.
    schemaController: { compilersFactory: { buildSerializer: () => () => JSON.stringify } },
    clientErrorHandler: (error, socket) => respondToMalformedRequest(error, socket, '', graphqlBody),
  })
  const bodies = new LargeBodies({ largestBytes: MAX_BODY_BYTES })
  const verifyCaller = (authorization: unknown) =>
    tokens.verify(typeof authorization === 'string' ? authorization.replace(/^Bearer /, '') : undefined, subgraph.name)

  const drain = new SocketDrain(opened)
  let hasOpened = !opened
  opened?.then(
    () => {
      hasOpened = true
    },
    // The start fails with it.
    () => undefined,
  )
  app.decorateRequest('link', null)
  app.addHook('onRoute', (route) => {
    if (route.url === PATH) route.bodyLimit = MAX_BODY_BYTES
  })
  // Before the body is read, so that strangers cannot fill the memory.
  app.addHook('onRequest', async (request, reply) => {
    if (request.routeOptions.url !== PATH) return
    if (!hasOpened) return reply.code(503).send({ errors: refusal() })
    const requestId = String(request.headers['x-request-id'] ?? '')
    telemetry.requests.start(requestId, true)
    try {
      const gone = new AbortController()
      reply.raw.once('close', () => {
        if (!reply.raw.writableFinished) gone.abort(REQUEST_OVER)
        telemetry.requests.end(requestId)
      })
      const caller = await verifyCaller(request.headers.authorization)
      ;(request as LinkRequest).link = { caller, requestId, signal: gone.signal }
      await bodies.admit(request, reply, () => ('service' in caller ? caller.service : caller.organizationId), MAX_BODY_BYTES)
    } catch (error) {
      if (!(error instanceof KisError)) throw error
      return reply.code(ERRORS[error.code].status).send(graphqlBody(error))
    }
  })
  app.addHook('preHandler', async (request, reply) => {
    if (request.routeOptions.url !== PATH) return
    const operation = (request.body ?? {}) as Partial<Operation>
    if (typeof operation.query !== 'string' || operation.query.length > MAX_TEXT_CHARACTERS)
      return reply.code(400).send(graphqlBody(new KisError('invalid_request', 'The request has no operation, or one that is too long.')))
    const end = watch?.start(nameOperation(subgraph.name, operation))
    if (end) reply.raw.once('close', end)
  })
  if (telemetry.tracer.isOn)
    app.addHook('preHandler', (request, reply, done) => {
      const { traceparent } = request.headers
      if (request.routeOptions.url !== PATH || reply.sent) return done()
      const name = nameOperation(subgraph.name, (request.body ?? {}) as Partial<Operation>)
      const span = telemetry.tracer.start(name, { kind: 'server', traceparent: typeof traceparent === 'string' ? traceparent : undefined })
      reply.raw.once('close', () => span.end())
      span.within(done)
    })
  app.addHook('onSend', (request, reply, payload, done) => {
    const { link } = request as LinkRequest
    const facts = link && telemetry.requests.drainUnsent(link.requestId)
    if (facts) reply.header(FACTS_HEADER, facts)
    done(null, payload)
  })
  healthRoutes(app, problems, log, { ...(stopping && { stopping }) })
  if (subgraph.openBytes)
    serveBytes(app, {
      startRequest: async (request) => String(request.headers['x-request-id'] ?? ''),
      async open(request, context) {
        if (!hasOpened) throw new ServiceUnavailable(subgraph.name)
        return subgraph.openBytes!(request, context)
      },
      format: (error, requestId) => formatThrown(error, log, requestId),
    })
  await app.register(mercurius, {
    schema: subgraph.schema,
    graphiql: false,
    subscription: false,
    cache: MAX_DOCUMENTS,
    context: (request) => ({ ...(subgraph.toResolverContext((request as LinkRequest).link!) as object) }),
    errorFormatter: ({ data, errors }, context) => {
      const { requestId = '' } = (context.reply?.request as LinkRequest | undefined)?.link ?? {}
      const formatted = complaints(errors ?? []).map((error) => formatError(error, log, requestId))
      return { statusCode: 200, response: { ...(data !== undefined && { data }), errors: formatted } as unknown as ExecutionResult }
    },
  })
  const link = observedLink(localLink(subgraph, log), subgraph.name, 'internal', { watch })
  const sockets = serveSubscriptions(app, subgraph.name, link, verifyCaller, drain, telemetry)
  const server = await listen(app, { host, port, clock, drainMs, hasPeers: true }, [drain])
  return {
    url: server.url,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await sockets.dispose()
    },
  }
}

interface LinkRequest {
  link?: LinkContext
}

interface LinkCall {
  readonly socketOperation: SocketOperation
  readonly operation: Operation
  readonly linkContext: LinkContext
}

/** What is known of the ends of the operations of each socket. */
const cuts = new WeakMap<WebSocket, CutOperations>()

interface SocketExtra extends Record<PropertyKey, unknown> {
  caller?: LinkContext['caller']
}

function serveSubscriptions(
  app: FastifyInstance,
  subgraphName: string,
  link: Link,
  verifyCaller: (authorization: unknown) => Promise<LinkContext['caller']>,
  drain: SocketDrain,
  telemetry: Telemetry,
) {
  const unauthenticated = new UnauthenticatedSockets()
  const wss = new WebSocketServer({ noServer: true, path: PATH, maxPayload: MAX_SERVICE_FRAME_BYTES, perMessageDeflate: false })
  app.server.on('upgrade', (request, connection, head) => {
    connection.on('error', () => connection.destroy())
    if (!wss.shouldHandle(request)) return refuseUpgrade(connection, '404 Not Found')
    if (unauthenticated.isFull) return refuseUpgrade(connection, '503 Service Unavailable')
    wss.handleUpgrade(request, connection, head, (socket) => {
      unauthenticated.enter(connection)
      cuts.set(socket, new CutOperations(socket))
      wss.emit('connection', socket, request)
    })
  })
  return useServer<Record<string, unknown>, SocketExtra>(
    {
      connectionInitWaitTimeout: INIT_TIMEOUT_MS,
      async onConnect(context) {
        try {
          context.extra.caller = await verifyCaller(context.connectionParams?.authorization)
        } catch {
          return false
        }
        unauthenticated.know(context.extra.request.socket)
        if (!drain.isAccepting) {
          context.extra.socket.close(ORDERLY_CLOSE, 'Going away')
          return false
        }
        drain.opened(context)
        return true
      },
      onClose: (context) => drain.closed(context),
      // The link parses, checks and formats. graphql-ws needs a document to tell subscriptions from other operations.
      onSubscribe: (context, _id, { query, variables, operationName, extensions }) => {
        if (!drain.isAccepting) return refusal()
        const operation = { query, variables: variables ?? undefined, operationName: operationName ?? undefined }
        const requestId = typeof extensions?.requestId === 'string' ? extensions.requestId : ''
        const subscription = readSubscription(extensions)
        const isCut = () => cuts.get(context.extra.socket)?.has(subscription) === true
        const options = { requestId, name: nameOperation(subgraphName, operation), isService: true, traceparent: extensions?.traceparent }
        const linkContext = { caller: context.extra.caller ?? null, requestId, signal: new AbortController().signal, isCut }
        return {
          // `execute` and `subscribe` below do without it.
          schema: undefined as never,
          document: parse(query),
          operationName: operationName ?? null,
          contextValue: { operation, linkContext, socketOperation: new SocketOperation(telemetry, options) },
        }
      },
      execute: async ({ contextValue }) => {
        const { operation, linkContext, socketOperation } = contextValue as LinkCall
        const result = await socketOperation.within(() => link.execute(operation, linkContext)).finally(() => socketOperation.end())
        return withErrorObjects(result)
      },
      subscribe: ({ contextValue }) => {
        const { operation, linkContext, socketOperation } = contextValue as LinkCall
        const results = drain.results(link.subscribe(operation, linkContext), () => ({ errors: [asGraphQLError(new EndedByRestart())] }))
        return changedSteps(socketOperation.results(results), (item) =>
          item.done ? item : { done: false, value: withErrorObjects(item.value) },
        )
      },
    },
    wss,
  )
}

/** graphql-ws calls `toJSON` of each error, and closes the whole socket when there is none. */
function withErrorObjects(result: ExecutionResult): ExecutionResult {
  return result.errors ? { ...result, errors: result.errors.map(asGraphQLError) } : result
}

/** Mercurius wraps what is wrong with the body of a request into one error of its own. */
function complaints(errors: readonly (GraphQLError | Error)[]): readonly GraphQLError[] {
  return errors.flatMap((error) => {
    const found = (error as { originalError?: { errors?: unknown } }).originalError?.errors
    return Array.isArray(found) ? (found as Error[]).map(asGraphQLError) : [asGraphQLError(error)]
  })
}

function asGraphQLError(error: Error): GraphQLError {
  if (error instanceof GraphQLError) return error
  const { message, path, extensions } = error as GraphQLError
  return new GraphQLError(message, { path: path ?? null, extensions: extensions ?? null })
}
