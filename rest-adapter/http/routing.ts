import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { byteRequest } from '../../subgraphs/common/bytes/byte-response.ts'
import { KisError } from '../../subgraphs/common/errors.ts'
import { countRequest } from '../../subgraphs/common/server/bodies/request-counts.ts'
import { type Check, compileChecks } from './checks.ts'
import type { RestDeps } from './deps.ts'
import { isForm, registerFormParser } from './forms.ts'
import type { OpenApi } from './openapi.ts'
import { registerOtherMethods } from './other-methods.ts'
import { rateLimitHeaders } from './rate-limits.ts'
import { inferenceHeaders, unknownUrl } from './requests.ts'
import { type Call, dataOf, eventsOf, executeOnGateway, type JsonObject, type Route } from './route.ts'
import { RESUMABLE_HEADER, RestEventStream } from './sse.ts'

/**
 * Nesting of objects and lists. JSON schemas nest some 20 deep. Far deeper JSON overflows the stack when it is
 * serialized.
 */
const MAX_JSON_DEPTH = 128

/** Limit of detached calls: as long as any call inside the service may take. The end of the process cuts it short. */
const THROUGH_MS = 10_000

/** Registers every route with the checks of its description, and responds to the other methods of its address. */
export function registerRoutes(app: FastifyInstance, routes: readonly Route[], openapi: OpenApi, deps: RestDeps): void {
  const checks = compileChecks(openapi)

  for (const route of routes) {
    const { operation } = route
    const checkBody = { ...checks.body(operation), isRequired: operation.isBodyRequired !== false }
    const checkQuery = checks.query(operation)

    const { chatBodyBytes: chat, uploadBodyBytes: upload, audioBodyBytes: audio, jsonBodyBytes: json } = deps.config
    const { streamBodyBytes: stream } = deps.config
    const options: RouteOptions = {
      method: operation.method,
      url: toUrl(route),
      bodyLimit: { chat, upload, audio, stream, json }[route.body ?? 'json'],
      config: toRouteConfig(route),
      ...(route.asIs && { compress: false }),
      handler: (request, reply) => respond(route, request, reply, checkBody, checkQuery, deps),
    }
    const register = PARSERS[route.body ?? 'json']
    if (!register) app.route(options)
    // The parser has a scope of its own, so that no other route reads such bodies.
    else
      app.register(async (scope) => {
        register(scope)
        scope.route(options)
      })
  }
  for (const [url, group] of Map.groupBy(routes, toUrl)) registerOtherMethods(app, url, group)
}

const PARSERS: Readonly<Partial<Record<NonNullable<Route['body']>, (scope: FastifyInstance) => void>>> = {
  audio: registerFormParser,
  upload: (scope) => passOn(scope, 'multipart/form-data'),
  stream: (scope) => passOn(scope, 'application/offset+octet-stream'),
}

/** Streams bodies of this type through to the route. */
function passOn(app: FastifyInstance, contentType: string): void {
  app.addContentTypeParser(contentType, (_request, payload, done) => done(null, payload))
}

function toRouteConfig(route: Route) {
  return { route, ...(route.dialect && { dialect: route.dialect }) }
}

/** Converts `/v1/files/{id}` to `/v1/files/:id`. */
function toUrl({ operation: { path }, slashes }: Route): string {
  const url = path.replaceAll(/\{(\w+)\}/g, ':$1')
  return slashes ? url.replace(/:\w+$/, '*') : url
}

async function respond(
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  checkBody: { readonly json: Check | undefined; readonly form: Check | undefined; readonly isRequired: boolean },
  checkQuery: Check | undefined,
  { gateway, loadShedder, clock, ids, log }: RestDeps,
): Promise<FastifyReply> {
  const { rest } = request
  const params = request.params as Record<string, string>
  if (route.slashes) {
    if (params['*'] === '') return unknownUrl(request, reply)
    params.id = params['*']!
  }
  const query = request.query as JsonObject
  checkQuery?.(query)
  const stream = request.body instanceof Readable ? request.body : undefined
  const check = (isForm(request) && checkBody.form) || checkBody.json
  const body = check && !stream ? requireBody(request.body ?? (checkBody.isRequired ? undefined : {})) : {}
  if (!route.checkedBehind && !stream) check?.(body)

  const context = { caller: rest.apiKey!, requestId: rest.id, signal: rest.signal }
  const call: Call = {
    params,
    query,
    body,
    stream,
    headers: request.headers,
    checkForm: (fields) => checkBody.form?.(fields),
    idempotencyKey: request.headers['idempotency-key'] as string | undefined,
    lastEventId: request.headers['last-event-id'] as string | undefined,
    context,
    log,
    clock,
    ids,
    method: request.method,
    async execute(query, variables, names) {
      rest.keyJudged = true
      const data = await executeOnGateway(gateway, { query, variables }, context, names)
      loadShedder.recognise(context.caller)
      return data
    },
    executeDetached(query, variables, names) {
      rest.keyJudged = true
      return executeOnGateway(gateway, { query, variables }, { ...context, signal: AbortSignal.timeout(THROUGH_MS) }, names)
    },
    async countRequest() {
      rest.keyJudged = true
      reply.headers(rateLimitHeaders(await countRequest(gateway, context)))
    },
    openBytes: (path) => gateway.openBytes(byteRequest(path, request), context),
    async cleanUp(query, variables) {
      await call
        .executeDetached(query, variables)
        .catch((error: unknown) => log.warn({ err: error, requestId: rest.id }, 'the clean-up after a request has failed'))
    },
    subscribe(operation, toEvent, { names, mayReturn = false } = {}) {
      rest.keyJudged = true
      const results = gateway.subscribe(operation, { ...context, isCut: () => mayReturn })
      return eventsOf(results, context.signal, (result) => toEvent(dataOf(result, names)))
    },
    setHeaders: (headers) => void reply.headers(headers),
    eventStream: () =>
      new RestEventStream(reply, clock, wantsIds(request), () => {
        if (route.inference) inferenceHeaders(request, reply, clock.now())
      }),
  }
  const result = await route.handle(call)
  if (!result) return reply
  if (route.inference) inferenceHeaders(request, reply, clock.now())
  return reply
    .code(result.status)
    .headers(result.headers ?? {})
    .send(result.body)
}

/** Whether events get IDs. A streamed `GET` resumes a stream, so it always gets them. */
function wantsIds({ method, headers }: FastifyRequest): boolean {
  return method === 'GET' || headers[RESUMABLE_HEADER] === 'true'
}

function requireBody(body: unknown): JsonObject {
  if (body === undefined)
    throw new KisError('invalid_request', 'The request has no body. Send a JSON object, with `content-type: application/json`.')
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new KisError('invalid_type', 'The body must be a JSON object.')
  if (isDeeper(body, MAX_JSON_DEPTH)) throw new KisError('invalid_request', `The body nests deeper than ${MAX_JSON_DEPTH} levels.`)
  return body as JsonObject
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1))
}
