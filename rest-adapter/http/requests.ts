import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type Duplex, Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { gatewayOperation } from '../../schema/operations.ts'
import { InvalidApiKey, KisError } from '../../subgraphs/common/errors.ts'
import { isSessionToken } from '../../subgraphs/common/identity/credentials.ts'
import { endTinyPieces } from '../../subgraphs/common/server/admission/large-bodies.ts'
import { parseLimitedJson, requirePlainBody } from '../../subgraphs/common/server/bodies/limited-json.ts'
import { countBody, countsBySize, isRefusal, requireRequestLeft } from '../../subgraphs/common/server/bodies/request-counts.ts'
import { isHealthRequest } from '../../subgraphs/common/server/health.ts'
import type { Admit } from '../../subgraphs/common/server/listen.ts'
import { respondToMalformedRequest } from '../../subgraphs/common/server/malformed-requests.ts'
import { clientRequestIdHeader, readClientRequestId } from '../../subgraphs/common/server/request-headers.ts'
import { clientAddress } from '../../subgraphs/common/sessions/client-address.ts'
import { sessionOf } from '../../subgraphs/common/sessions/session-cookie.ts'
import type { RestDeps, RestParts } from './deps.ts'
import { errorBody, notJson, sendError, toErrorResponse, toKisError } from './errors.ts'
import { isJson } from './forms.ts'
import { KeyOwners } from './key-owners.ts'
import { type Dialect, executeOnGateway, type Route } from './route.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The facts about a request that are known before its route runs. */
    rest: RequestState
  }
  interface FastifyContextConfig {
    /** Absent: the address needs no key. */
    readonly route?: Route
    /** Absent: the chat protocol. */
    readonly dialect?: Dialect
  }
}

interface RequestState {
  /** The service's own request ID. */
  readonly id: string
  readonly startedMs: number
  /** The key without `Bearer`, or the token of a session. Null: neither was sent. */
  readonly apiKey: string | null
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
  /** True once the gateway was called, because every call checks the key. */
  keyJudged: boolean
}

/** Headers that scripts of other origins may read. The rate limits are those of the chat protocol. */
const EXPOSED_HEADERS = [
  'x-request-id',
  'x-client-request-id',
  'request-id',
  'x-should-retry',
  'retry-after',
  'retry-after-ms',
  'openai-processing-ms',
  'openai-version',
  'x-kis-warning',
  'x-kis-stream-id',
  'idempotent-replayed',
  'content-disposition',
  'mcp-session-id',
  'location',
  'upload-offset',
  'upload-length',
  'upload-metadata',
  'upload-expires',
  'www-authenticate',
  'tus-resumable',
  'tus-version',
  'tus-extension',
  'x-kis-file-id',
  'x-next-offset',
  'x-document-status',
  ...['limit', 'remaining', 'reset'].flatMap((fact) => [`x-ratelimit-${fact}-requests`, `x-ratelimit-${fact}-tokens`]),
].join(', ')

type StartParts = 'clock' | 'ids' | 'inFlight' | 'config' | 'log' | 'telemetry'

/**
 * Options of the app itself, for errors before any route or hook runs. A path parameter has at most 300 characters: IDs
 * have about 40; IDs of models are longer and percent-encoded.
 */
export function serverOptions(parts: Pick<RestParts, StartParts>) {
  return {
    routerOptions: { maxParamLength: 300 },
    frameworkErrors(_error: Error, request: FastifyRequest, reply: FastifyReply): void {
      startRequest(request, reply, parts)
      sendError(reply, new KisError('unknown_url', 'The request URL is malformed or too long.'), parts.config.oauth)
    },
    clientErrorHandler: (error: NodeJS.ErrnoException, socket: Duplex) =>
      respondToMalformedRequest(error, socket, parts.ids('req'), errorBody),
  }
}

function startRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  { clock, ids, inFlight, config, log, telemetry }: Pick<RestParts, StartParts>,
): void {
  const { headers } = request
  const dialect = request.routeOptions.config?.dialect
  const id = ids('req')
  telemetry.requests.start(id)
  const clientId = readClientRequestId(headers)
  if (clientId !== undefined) log.debug({ requestId: id, clientRequestId: clientId }, 'the client has an id of its own for this request')
  request.rest = {
    id,
    startedMs: clock.now().getTime(),
    apiKey: readKey(request.raw, dialect),
    signal: inFlight.add(reply),
    keyJudged: false,
  }
  reply.headers(headersOfAll(id, dialect, headers))
  if (!request.routeOptions.config?.cors) reply.headers(config.origins.responseHeaders(headers, EXPOSED_HEADERS))
}

/**
 * Returns the key that the client sent; else the session of a page of the service itself, such as the reference at
 * `/docs`.
 */
function readKey({ headers, url = '' }: IncomingMessage, dialect: Dialect | undefined): string | null {
  const ownKey = dialect?.keyHeader && headers[dialect.keyHeader]
  const sent = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? (typeof ownKey === 'string' && ownKey !== '' ? ownKey : null)
  if (sent === null) return url.startsWith('/v1/') ? sessionOf(headers) : null
  // The token of a session is accepted only in the cookie, where the same-origin rule applies.
  return isSessionToken(sent) ? null : sent
}

/** Returns the headers of every response. */
const headersOfAll = (id: string, dialect: Dialect | undefined, headers: IncomingHttpHeaders) => ({
  'x-request-id': id,
  ...clientRequestIdHeader(headers),
  ...(dialect?.requestIdHeader && { [dialect.requestIdHeader]: id }),
})

/**
 * Writes the responses to requests that the load shedder refuses, in the format of the route's clients. Health checks
 * are always admitted.
 */
export function admitBy(routes: readonly Route[], { loadShedder, ids, config }: Pick<RestParts, 'loadShedder' | 'ids' | 'config'>): Admit {
  const own = routes.filter(({ dialect }) => dialect)
  return (request, response, start) => {
    const path = request.url!.split('?', 1)[0]!
    const dialect = own.find((route) => route.operation.path === path)?.dialect
    if (isHealthRequest(request)) return start()
    try {
      response.once('close', loadShedder.enter(readKey(request, dialect), clientAddress(request), start))
    } catch (error) {
      const id = ids('req')
      const { status, headers, body } = toErrorResponse(error as KisError, dialect, id)
      const cors = config.origins.responseHeaders(request.headers, EXPOSED_HEADERS)
      const all: Record<string, string | number> = {
        ...headersOfAll(id, dialect, request.headers),
        ...cors,
        ...headers,
        'content-length': Buffer.byteLength(body),
      }
      response.writeHead(status, all).end(body)
    }
  }
}

/** Registers the rules for all requests: ids, keys, CORS, bodies, errors. */
export function registerRequestRules(app: FastifyInstance, parts: RestParts): void {
  const { gateway, clock, config, log, bodies, telemetry } = parts
  const owners = new KeyOwners(gateway, clock)
  app.decorateRequest('rest')
  const countLarge = (request: FastifyRequest) =>
    countBody(gateway, contextOf(request)).catch((failed) => {
      log.debug({ err: failed, requestId: request.rest.id }, 'a request with a large body is not counted')
      return null
    })

  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, cors: { ...config.origins.corsOfRoute(EXPOSED_HEADERS), ...route.config?.cors } }
  })
  app.addHook('onRequest', async (request, reply) => {
    startRequest(request, reply, parts)
    if (request.is404) return unknownUrl(request, reply)
    const { route } = request.routeOptions.config
    if (!route) return
    if (!request.rest.apiKey) throw new InvalidApiKey()
    requirePlainBody(request.headers)
    route.refuse?.(request, config)
    const isPassedOn = route.body === 'stream' || (route.body === 'upload' && !isJson(request))
    const heldBytes = isPassedOn ? config.streamBodyBytes : request.routeOptions.bodyLimit!
    await bodies.admit(request, reply, () => owners.of(request), heldBytes)
    if (isPassedOn || !countsBySize(request.headers)) return
    request.rest.keyJudged = true
    // Checked after the wait for room: others may have used the last request meanwhile.
    await requireRequestLeft(gateway, contextOf(request))
    // Counts also when the client has left. A call that returns the remaining limit has counted itself.
    reply.raw.once('close', () => {
      if (reply.statusCode < 400 && !reply.hasHeader('x-ratelimit-limit-requests')) void countLarge(request)
    })
  })

  app.addHook('preParsing', endTinyPieces)
  app.addHook('onSend', async (request, reply, payload) => {
    if (!request.routeOptions.config?.route || reply.statusCode >= 400) return
    try {
      await bodies.admitResponse(reply, payload, () => owners.of(request))
    } catch (error) {
      if (payload instanceof Readable) payload.destroy()
      reply.removeHeader('content-disposition')
      throw error
    }
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text, done) => {
    if (!request.routeOptions.config.route) return done(null, undefined)
    try {
      // An empty body counts as no body: some clients always send the header.
      done(null, text === '' ? undefined : parseLimitedJson(text as string))
    } catch (error) {
      done(
        error instanceof KisError
          ? error
          : new KisError('invalid_request', `The body is not valid JSON: ${(error as Error).message}`, { cause: error }),
      )
    }
  })
  app.addContentTypeParser('*', (request, payload, done) => {
    if (request.headers['content-length'] !== '0') return done(notJson())
    payload.resume()
    done(null, undefined)
  })

  app.setNotFoundHandler((request, reply) => {
    // The address has no route here, such as a preflight of `OPTIONS *`: the rules above did not run.
    if (!request.rest) startRequest(request, reply, parts)
    return unknownUrl(request, reply)
  })
  app.setErrorHandler(async (thrown, request, reply) => {
    const { id, apiKey, keyJudged, signal } = request.rest
    // The signal's reason explains the end better than the error that it caused further in.
    let error = toKisError(signal.reason instanceof KisError ? signal.reason : thrown, log, id, request.routeOptions.bodyLimit)
    // Without a valid key a client learns nothing else: the key is checked before the fault of the request is reported.
    if (apiKey && !keyJudged && request.routeOptions.config.route)
      error = await judgeKey(gateway, request).then(
        () => error,
        (judgement) => toKisError(judgement, log, id),
      )
    if (apiKey && request.routeOptions.config.route && countsBySize(request.headers) && isRefusal(error, request.body !== undefined))
      error.rateLimits = await countLarge(request)
    if (request.routeOptions.config.route?.inference) inferenceHeaders(request, reply, clock.now())
    // Fastify would cut the connection, and a client that is still sending would not read the response.
    reply.removeHeader('connection')
    telemetry.requests.report(id, { error: error.code })
    if (reply.raw.destroyed) log.info({ requestId: id }, 'client disconnected')
    sendError(reply, error, config.oauth)
    return reply
  })
}

/** @throws {KisError} the gateway refuses the key */
async function judgeKey(gateway: RestDeps['gateway'], request: FastifyRequest): Promise<void> {
  request.rest.keyJudged = true
  await executeOnGateway(gateway, { query: gatewayOperation('query CheckKey { __typename }') }, contextOf(request))
}

function contextOf({ rest }: FastifyRequest) {
  return { caller: rest.apiKey, requestId: rest.id, signal: rest.signal }
}

/** Refuses an unknown address. Redirects one with a trailing slash to the address without it. */
export async function unknownUrl({ method, url }: FastifyRequest, reply: FastifyReply) {
  const path = url.split('?', 1)[0]!
  if (path.startsWith('/v1/') && path.endsWith('/')) return reply.redirect(path.slice(0, -1) + url.slice(path.length), 308)
  throw new KisError('unknown_url', `Unknown request URL: ${method} ${path}. The reference is at /docs.`)
}

/** Sets the chat protocol's headers of a model's response. */
export function inferenceHeaders({ rest }: FastifyRequest, reply: FastifyReply, now: Date): void {
  reply.headers({ 'openai-version': '2020-10-01', 'openai-processing-ms': now.getTime() - rest.startedMs })
}
