import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type ExecutionResult, GraphQLError } from 'graphql'
import { ERRORS, toErrorCode } from '../schema/errors.ts'
import { KisError, REQUEST_OVER } from '../subgraphs/common/errors.ts'
import { hasRequestLimit, type Principal } from '../subgraphs/common/identity/principal.ts'
import type { Link } from '../subgraphs/common/link/link.ts'
import type { IdSource } from '../subgraphs/common/process/ids.ts'
import type { Log } from '../subgraphs/common/process/log.ts'
import { endTinyPieces, type LargeBodies } from '../subgraphs/common/server/admission/large-bodies.ts'
import type { LoadShedder } from '../subgraphs/common/server/admission/load-shedder.ts'
import { checkJsonSize, requirePlainBody } from '../subgraphs/common/server/bodies/limited-json.ts'
import { countBody, countsBySize, isRefusal, requireRequestLeft } from '../subgraphs/common/server/bodies/request-counts.ts'
import { compressResponses } from '../subgraphs/common/server/compression.ts'
import { isHealthRequest } from '../subgraphs/common/server/health.ts'
import type { Admit } from '../subgraphs/common/server/listen.ts'
import type { Origins } from '../subgraphs/common/server/origins.ts'
import { clientRequestIdHeader } from '../subgraphs/common/server/request-headers.ts'
import { clientAddress } from '../subgraphs/common/sessions/client-address.ts'
import { sessionOf } from '../subgraphs/common/sessions/session-cookie.ts'
import { sizeText } from '../subgraphs/common/sizes.ts'
import { FACTS_HEADER } from '../subgraphs/common/telemetry/request-facts.ts'
import type { Telemetry } from '../subgraphs/common/telemetry/telemetry.ts'
import type { ApolloOverHttp } from './apollo-over-http.ts'
import { checkText, type Documents } from './documents.ts'
import type { EventStreams } from './event-streams.ts'
import type { Federation } from './federation/federation.ts'
import { registerAssets, sendPage, wantsPage } from './graphiql.ts'
import type { Authenticator } from './keys/authenticate.ts'
import type { Mask } from './mask.ts'
import type { Operations, SubscriptionContext } from './operations.ts'
import { type OperationReference, PERSISTED_QUERY_NOT_FOUND, type PersistedOperations } from './persisted-operations.ts'
import { chooseRequestId } from './request-id.ts'
import { chooseCredentials } from './sessions/credentials.ts'

const METHODS = 'GET, POST, OPTIONS'
/** Headers that scripts of other origins may read. */
const EXPOSED_HEADERS = 'x-request-id, x-client-request-id, retry-after'

/**
 * The context of one HTTP request. `isService`: the caller is a process of this service, which may run any operation.
 */
export interface HttpContext extends SubscriptionContext {
  readonly isService: boolean
}

export interface HttpParts {
  readonly documents: Documents
  readonly operations: Operations
  readonly persisted: PersistedOperations
  readonly isService: (request: IncomingMessage) => Promise<boolean>
  readonly streams: EventStreams
  readonly federation: Federation
  readonly authenticator: Authenticator
  readonly mask: Mask
  readonly loadShedder: Pick<LoadShedder, 'enter'>
  readonly ids: IdSource
  readonly log: Log
  readonly maxBodyBytes: number
  /** Whether callers may read the schema. If so, browsers get GraphiQL. */
  readonly introspection: boolean
  readonly bodies: LargeBodies
  /** The link that counts requests. */
  readonly inference: Link
  readonly origins: Origins
  readonly telemetry: Telemetry
}

/**
 * Serves GET (queries) and POST /graphql. Apollo Server handles GraphQL over HTTP. `Operations` runs the operation, as
 * for every transport.
 */
export async function serveHttp(app: FastifyInstance, parts: HttpParts): Promise<AsyncDisposable> {
  let apollo: Promise<ApolloOverHttp> | undefined
  // Apollo Server takes 0.1 s to load, and no other entry point of the service needs it.
  const openApollo = () => (apollo ??= import('./apollo-over-http.ts').then((loaded) => loaded.openApollo(parts)))
  await app.register(async (scope) => {
    await compressResponses(scope)
    registerHttp(scope, openApollo, parts)
    if (parts.introspection) registerAssets(scope)
  })
  return { [Symbol.asyncDispose]: async () => (await apollo)?.[Symbol.asyncDispose]() }
}

function registerHttp(app: FastifyInstance, openApollo: () => Promise<ApolloOverHttp>, parts: HttpParts): void {
  const { mask, log, maxBodyBytes, bodies, inference, introspection: hasPage } = parts
  const { requests } = parts.telemetry
  const cors = parts.origins.corsOfRoute(EXPOSED_HEADERS, METHODS)
  const contexts = new WeakMap<FastifyRequest, HttpContext>()

  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text, done) => {
    try {
      checkJsonSize(text as string)
    } catch (error) {
      return done(error as KisError)
    }
    return parseJson(request, text as string, done)
  })
  /**
   * Requests with a large body that a call of their operation has counted, or that failed through no fault of the
   * caller.
   */
  const counted = new WeakSet<FastifyRequest>()
  function judge(request: FastifyRequest, result: Pick<ExecutionResult, 'errors'>): void {
    if (result.errors?.length && !isRefused(result, request.body !== undefined)) counted.add(request)
  }

  app.route({
    method: ['GET', 'POST'],
    url: '/graphql',
    config: { cors },
    bodyLimit: maxBodyBytes,
    // The key is checked before the body is read, so that callers without a key cannot fill the memory.
    onRequest: async (request, reply) => {
      if (hasPage && wantsPage(request)) return sendPage(reply)
      const context = await buildContext(parts, request, reply, () => counted.add(request))
      contexts.set(request, context)
      requirePlainBody(request.headers)
      requireNoForm(request.headers)
      await bodies.admit(request, reply, () => context.caller.organizationId, maxBodyBytes)
      if (!countsBody(request, context)) return
      // Checked after the wait for room: others may have used the last request meanwhile.
      await requireRequestLeft(inference, context)
      // Counts also when the client has left.
      reply.raw.once('close', () => {
        if (!counted.has(request)) void countBody(inference, context).catch(() => undefined)
      })
    },
    preParsing: endTinyPieces,
    onSend: (request, reply, payload, done) => {
      const context = contexts.get(request)
      if (context && countsBody(request, context) && hasErrors(payload)) judge(request, JSON.parse(payload))
      const facts = context?.isService ? requests.drainUnsent(context.requestId) : undefined
      if (facts) reply.header(FACTS_HEADER, facts)
      if (!context) return done(null, payload)
      bodies.admitResponse(reply, payload, () => context.caller.organizationId).then(() => done(null, payload), done)
    },
    preHandler: async (request) => putQueryText(request, parts.persisted, contexts.get(request)!.caller),
    errorHandler: (error, request, reply) => {
      if (isNotFound(error)) return reply.header('cache-control', 'private, no-cache, must-revalidate').send({ errors: [mask(error, '')] })
      const known = transportError(error, maxBodyBytes)
      // Fastify would cut the connection, and a client that is still sending would not read the response.
      reply.removeHeader('connection')
      const requestId = contexts.get(request)?.requestId ?? ''
      if (known.code === 'internal') log.error({ requestId, err: error }, 'defect in GraphQL over HTTP')
      if (known.code === 'invalid_api_key') reply.header('www-authenticate', 'Bearer')
      if (known.retryAfterMs !== null) reply.header('retry-after', Math.ceil(known.retryAfterMs / 1_000))
      return reply
        .code(ERRORS[known.code].status)
        .type(chooseMediaType(request.headers.accept))
        .send(JSON.stringify({ errors: [mask(known, requestId)] }))
    },
    async handler(request, reply) {
      const context = contexts.get(request)!
      if (await parts.streams.handle(request, reply, context, (first) => judge(request, first))) return reply
      return (await openApollo()).handle(request, reply, context)
    },
  })
  app.options('/graphql', { config: { cors } }, async (_request, reply) => reply.code(204).header('allow', METHODS).send())
}

/** @throws {KisError} `unsupported_value`: the body is a form, such as a multipart request with files */
function requireNoForm({ 'content-type': type }: IncomingHttpHeaders): void {
  if (!type?.toLowerCase().startsWith('multipart/form-data')) return
  throw new KisError(
    'unsupported_value',
    '`/graphql` accepts no multipart requests. Upload the file with `POST /v1/files`, or by tus at `/v1/uploads/tus`.',
    { param: 'content-type' },
  )
}

/** Whether the body counts here. A process of this service counts the requests that it forwards itself. */
function countsBody({ headers }: FastifyRequest, { isService, caller }: HttpContext): boolean {
  return !isService && hasRequestLimit(caller) && countsBySize(headers)
}

/** Whether the payload of a response starts with errors. */
function hasErrors(payload: unknown): payload is string {
  return typeof payload === 'string' && payload.startsWith('{"errors"')
}

/** Whether the operation failed through its own fault. */
function isRefused({ errors }: Pick<ExecutionResult, 'errors'>, wasRead: boolean): boolean {
  const { code, vendorCode } = errors?.[0]?.extensions ?? {}
  const known = toErrorCode(code)
  return known !== undefined && isRefusal({ code: known, vendorCode: typeof vendorCode === 'string' ? vendorCode : null }, wasRead)
}

/**
 * Writes the responses to requests that the load shedder refuses, in the format of GraphQL. Health checks are always
 * admitted.
 */
export function admitBy({ loadShedder, ids, mask, origins }: Pick<HttpParts, 'loadShedder' | 'ids' | 'mask' | 'origins'>): Admit {
  return (request, response, start) => {
    if (isHealthRequest(request)) return start()
    try {
      const credentials = request.headers.authorization ?? sessionOf(request.headers)
      response.once('close', loadShedder.enter(credentials, clientAddress(request), start))
    } catch (error) {
      const { code, retryAfterMs } = error as KisError
      const id = ids('req')
      const body = JSON.stringify({ errors: [mask(error, id)] })
      response
        .writeHead(ERRORS[code].status, {
          ...origins.responseHeaders(request.headers, EXPOSED_HEADERS),
          'x-request-id': id,
          ...clientRequestIdHeader(request.headers),
          'retry-after': String(Math.ceil((retryAfterMs ?? 0) / 1_000)),
          'content-type': chooseMediaType(request.headers.accept),
          'content-length': Buffer.byteLength(body),
        })
        .end(body)
    }
  }
}

/**
 * Returns the media type of an error without data. Clients that accept the type of GraphQL over HTTP, such as Apollo's,
 * read the errors of a response with a status of 400 or more only from that type.
 */
function chooseMediaType(accept: string | undefined): string {
  return `application/${accept?.includes('application/graphql-response+json') ? 'graphql-response+json' : 'json'}; charset=utf-8`
}

async function buildContext(
  { authenticator, ids, isService, telemetry }: HttpParts,
  request: FastifyRequest,
  reply: FastifyReply,
  counted: () => void,
): Promise<HttpContext> {
  const isOurs = await isService(request.raw)
  const requestId = chooseRequestId(request.headers['x-request-id'], isOurs, ids)
  reply.headers({ 'x-request-id': requestId, ...clientRequestIdHeader(request.headers) })
  telemetry.requests.start(requestId, isOurs)
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort(REQUEST_OVER)
  })
  const credentials = chooseCredentials(request.headers.authorization, sessionOf(request.headers), isOurs)
  const caller = await authenticator.getPrincipal(credentials, requestId)
  return { caller, requestId, signal: gone.signal, credentials, isService: isOurs, ...(countsBySize(request.headers) && { counted }) }
}

/**
 * Puts the text of a persisted operation into the field that Apollo Server reads.
 * @throws {KisError} `operation_too_complex`: the text is too long
 */
function putQueryText(request: FastifyRequest, persisted: PersistedOperations, caller: Principal): void {
  if (request.method === 'GET') {
    const [path, search = ''] = request.url.split('?', 2)
    const params = new URLSearchParams(search)
    const extensions = parsedOrNull(params.get('extensions')) as OperationReference['extensions']
    const documentId = params.get('documentId')
    if (documentId === null && !extensions?.persistedQuery) return
    params.set('query', persisted.findText({ query: params.get('query'), documentId, extensions }, caller))
    params.delete('extensions')
    request.raw.url = `${path}?${params}`
    return
  }
  const body = request.body as OperationReference | null | undefined
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) request.body = withQueryText(body, persisted, caller)
}

function withQueryText(body: OperationReference, persisted: PersistedOperations, caller: Principal): OperationReference {
  // Apollo Server parses the text before it calls our code, so the text is checked here.
  if (typeof body.query === 'string') checkText(body.query)
  if (body.documentId === undefined && !body.extensions?.persistedQuery) return body
  // Some clients send null for an absent text.
  if (body.query !== undefined && body.query !== null && typeof body.query !== 'string')
    throw new KisError('invalid_type', '`query` must be a text.', { param: 'query' })
  const { extensions: _extensions, documentId: _documentId, ...rest } = body
  return { ...rest, query: persisted.findText(body, caller) }
}

function parsedOrNull(json: string | null): unknown {
  try {
    return json === null ? null : JSON.parse(json)
  } catch {
    // Apollo Server reports the fault of the reference.
    return null
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof GraphQLError && error.extensions.code === PERSISTED_QUERY_NOT_FOUND
}

/** Converts an error of Fastify or of our hooks, thrown before Apollo Server runs, into a KisError. */
function transportError(error: unknown, maxBodyBytes: number): KisError {
  if (error instanceof KisError) return error
  const { statusCode = 500, message } = error as { statusCode?: number; message: string }
  if (statusCode === 413)
    return new KisError('payload_too_large', `The body has more than ${sizeText(maxBodyBytes)}, the limit of this address.`)
  if (statusCode < 500) return new KisError('invalid_request', message)
  return new KisError('internal', 'The service failed to process the request.', { cause: error })
}
