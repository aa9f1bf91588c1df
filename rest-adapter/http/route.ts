import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import type { ExecutionResult } from 'graphql'
import { GRAPHQL_CODES } from '../../schema/errors.ts'
import type { OperationText } from '../../schema/operations.ts'
import { checkBoolean } from '../../subgraphs/common/check.ts'
import { KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import type { Link, LinkContext, Operation } from '../../subgraphs/common/link/link.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import { changedSteps } from '../../subgraphs/common/process/endable-iterator.ts'
import type { IdSource } from '../../subgraphs/common/process/ids.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import type { RestConfig } from '../config.ts'
import type { BodyOf, ParamsOf, QueryOf, ResponseOf, RestOperation } from '../contract/build.ts'
import { type ParamNames, restParam } from './param-names.ts'
import type { RestEventStream } from './sse.ts'

export type JsonObject = Readonly<Record<string, unknown>>

/** The response of a route. */
export interface RouteResponse<Body = unknown> {
  readonly status: number
  /** An object is sent as JSON, a stream unchanged. */
  readonly body: Body
  readonly headers?: Readonly<Record<string, string>>
}

/** One request, checked against the description of its operation. */
export interface Call<O extends RestOperation = RestOperation> {
  readonly params: RestOperation extends O ? Readonly<Record<string, string>> : ParamsOf<O>
  readonly query: RestOperation extends O ? JsonObject : QueryOf<O>
  /** Empty on routes without a body. */
  readonly body: RestOperation extends O ? JsonObject : BodyOf<O>
  /** The incoming body, on routes that stream it through. */
  readonly stream: Readable | undefined
  readonly headers: IncomingHttpHeaders
  /**
   * Checks the fields of a form that the route has read itself.
   * @throws {KisError} a field is missing, unknown or malformed
   */
  checkForm(fields: JsonObject): void
  /** The header `Idempotency-Key`, for calls of models. */
  readonly idempotencyKey: string | undefined
  /** The header `Last-Event-ID`, with which a client of server-sent events resumes after a disconnect. */
  readonly lastEventId: string | undefined
  /**
   * Runs one operation at the gateway. `names` translates the paths of inputs in its errors.
   * @throws {KisError} the first error of the gateway
   */
  execute<Data>(query: OperationText<Data, never>, variables?: JsonObject, names?: ParamNames): Promise<Data>
  /**
   * Like `execute`, for an operation that would leave data behind if its response were lost: it continues for
   * `THROUGH_MS` when the client leaves.
   */
  executeDetached: Call['execute']
  /**
   * Counts the request against the limits of its key, for routes that call no model: a call of a model counts itself.
   * @throws {KisError} `rate_limit_exceeded`: the key has no request left
   */
  countRequest(): Promise<void>
  /**
   * Opens stored bytes at a path that the gateway has returned, in the range that the client's headers request.
   * @throws {KisError} the gateway refuses the request
   */
  openBytes(path: string): Promise<RouteResponse>
  /**
   * Runs one operation for the caller even after the client has left, for at most `THROUGH_MS`. A failure is logged.
   */
  cleanUp(query: OperationText<unknown, never>, variables: JsonObject): Promise<void>
  /**
   * Starts a subscription at the gateway with the first `next()`, and ends it when the client leaves or the reader
   * fails. `mayReturn`: a client that disconnects may resume it. `next()` rejects with the first error of the gateway.
   */
  subscribe<Data, Event>(
    operation: Operation & { readonly query: OperationText<Data, never> },
    toEvent: (data: Data) => Event,
    options?: { readonly names?: ParamNames | undefined; readonly mayReturn?: boolean },
  ): AsyncIterableIterator<Event, undefined>
  /** Its signal aborts when the client disconnects, or the process is about to stop. */
  readonly context: LinkContext<string>
  readonly log: Log
  readonly clock: Clock
  readonly ids: IdSource
  /** The request's own method: `HEAD` on a route of `GET`. */
  readonly method: string
  /** Sets headers of the response, or of the stream if it has not started. */
  setHeaders(headers: Readonly<Record<string, string>>): void
  /** Responds with server-sent events. The response starts with the first event. */
  eventStream(): RestEventStream
}

/**
 * The differences of a route for clients of a protocol other than the chat protocol: where their key is, and the format
 * of errors.
 */
export interface Dialect {
  /** The header with the key (without `Bearer`) if there is no `Authorization: Bearer`. */
  readonly keyHeader?: string
  /** A header that carries the request ID in addition to `x-request-id`. */
  readonly requestIdHeader?: string
  toStatus(error: KisError): number
  errorBody(error: KisError, requestId: string): unknown
}

/** One method of one address of the REST API. */
export interface Route<O extends RestOperation = RestOperation> {
  readonly operation: O
  /** The last parameter of the path may contain slashes. */
  readonly slashes?: boolean
  /**
   * How the body is read, and how many bytes of it are held; default `json`. `audio` is a form; `stream` is streamed
   * through, and so is `upload` unless it is JSON; all others are JSON.
   */
  readonly body?: 'chat' | 'upload' | 'audio' | 'stream' | 'json'
  /** Headers of the response to `OPTIONS`, which describe what the address can do. */
  readonly protocolHeaders?: Readonly<Record<string, string>>
  /** The response is a file, whose bytes and length are sent unchanged. */
  readonly asIs?: boolean
  /** The service behind the gateway checks the whole body. The route checks only what it needs itself. */
  readonly checkedBehind?: boolean
  /** Responses carry the headers of the chat protocol. */
  readonly inference?: boolean
  /** Default: the chat protocol. */
  readonly dialect?: Dialect
  /** Refuses a request by its headers, before the body is read. */
  readonly refuse?: (request: FastifyRequest, config: RestConfig) => void
  /** Returns `undefined` if the route has already responded. */
  handle(call: Call<O>): Promise<RouteResponse<ResponseOf<O>> | undefined>
}

/** Declares a route: its handler gets, and returns, what the operation describes. */
export const route = <O extends RestOperation>(declared: Route<O>) => declared as unknown as Route

export const ok = <const Body>(body: Body): RouteResponse<Body> => ({ status: 200, body })
export const created = <const Body>(body: Body): RouteResponse<Body> => ({ status: 201, body })
export const deleted = (object: string, id: string) => ok({ id, object, deleted: true })

/** Runs one operation over the link. Paths in its errors are in the caller's own names. */
export async function executeOnGateway<Data>(
  gateway: Link<string | null>,
  operation: Operation & { readonly query: OperationText<Data, never> },
  context: LinkContext<string | null>,
  names: ParamNames = {},
): Promise<Data> {
  return dataOf(await gateway.execute(operation, context), names)
}

/**
 * Yields the events of a subscription. When the signal aborts, `next()` rejects with its reason. An error also ends the
 * source.
 */
export function eventsOf<Event>(
  results: AsyncIterableIterator<ExecutionResult, undefined>,
  signal: AbortSignal,
  toEvent: (result: ExecutionResult) => Event,
): AsyncIterableIterator<Event, undefined> {
  const end = () => void results.return?.()
  signal.addEventListener('abort', end, { once: true })
  return changedSteps(results, (step) => {
    if (step.done) {
      signal.throwIfAborted()
      return step
    }
    try {
      return { done: false, value: toEvent(step.value) }
    } catch (error) {
      end()
      throw error
    }
  })
}

/** @throws {KisError} the result's first error, in the caller's own names */
export function dataOf<Data>({ data, errors }: ExecutionResult, names: ParamNames = {}): Data {
  if (errors?.length) throw inRestNames(KisError.fromGraphQL(errors[0]!), names)
  if (!data) throw new ServiceUnavailable('A part of the service')
  return data as Data
}

/** Converts an error of the gateway for REST: to the names of the caller's request, without details of GraphQL. */
function inRestNames(error: KisError, names: ParamNames = {}): KisError {
  const { message, retryAfterMs } = error
  const code = GRAPHQL_CODES[error.code]
  if (code) return new KisError(code, message, { retryAfterMs, cause: error })
  if (error.param === null) return error
  const param = restParam(error.param, names)
  // Messages quote the field that they are about.
  const own = [..."`'"].reduce((text, quote) => text.replaceAll(`${quote}${error.param}${quote}`, `${quote}${param}${quote}`), message)
  return withParam(error, param, own)
}

/** Returns the same error for the field by its name in the caller's request. */
export function withParam(error: KisError, param: string, message: string = error.message): KisError {
  const { code, retryAfterMs, vendorCode, shouldRetry, rateLimits } = error
  return new KisError(code, message, { param, retryAfterMs, vendorCode, shouldRetry, rateLimits, cause: error })
}

/** Whether the caller wants a stream. Inference checks the rest of the request. */
export function isStream({ stream }: JsonObject): boolean {
  checkBoolean(stream, 'stream')
  return stream === true
}
