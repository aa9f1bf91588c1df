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
import type { Method } from './openapi.ts'
import { type ParamNames, restParam } from './param-names.ts'
import type { RestEventStream } from './sse.ts'

export type JsonObject = Readonly<Record<string, unknown>>

export interface RouteResponse {
  readonly status: number
  /** An object is sent as JSON, a stream as it is. */
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** One request, checked against the description of its operation. */
export interface Call {
  readonly params: Readonly<Record<string, string>>
  readonly query: JsonObject
  /** Empty on routes without a body. */
  readonly body: JsonObject
  /** The body as it comes in, on routes that pass it on. */
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
  /** As `ask`, for something that is left over if its answer is lost: it goes on for `THROUGH_MS` when the client leaves. */
  executeDetached: Call['execute']
  /**
   * Counts the request against the limits of its key, as a call of a model counts itself.
   * @throws {KisError} `rate_limit_exceeded`: the key has no request left
   */
  countRequest(): Promise<void>
  /**
   * Opens stored bytes at a path that the gateway has returned, those that the client's headers ask for.
   * @throws {KisError} the gateway refuses it
   */
  openBytes(path: string): Promise<RouteResponse>
  /** Runs one operation for the caller even after the client has left, for at most `THROUGH_MS`. A failure is logged. */
  cleanUp(query: OperationText<unknown, never>, variables: JsonObject): Promise<void>
  /**
   * Starts a subscription at the gateway with the first `next()`, and ends it when the client leaves or the reader fails.
   * `mayReturn`: a client that disconnects may come back for it. `next()` rejects with the first error of the gateway.
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
  /** `HEAD` on a route of `GET`. */
  readonly method: string
  /** Sets headers of the answer, or of the stream if it has not begun. */
  setHeaders(headers: Readonly<Record<string, string>>): void
  /** Answers with server-sent events. The answer begins with the first event. */
  eventStream(): RestEventStream
}

/**
 * How a route differs for clients of another protocol than the chat protocol: where their key is, and what errors look
 * like.
 */
export interface Dialect {
  /** The header with the key (no `Bearer`) if there is no `Authorization: Bearer`. */
  readonly keyHeader?: string
  /** Also carries the request id, beside `x-request-id`. */
  readonly requestIdHeader?: string
  toStatus(error: KisError): number
  errorBody(error: KisError, requestId: string): unknown
}

export interface Route {
  readonly method: Method
  /** As in `schema/openapi.yaml`. */
  readonly path: string
  /** The last parameter of the path may contain slashes. */
  readonly slashes?: boolean
  /**
   * How the body is read, and how many bytes of it are held; default `json`. `audio` is a form, `stream` is passed on
   * while it comes in, `upload` too unless it is JSON, and all others are JSON.
   */
  readonly body?: 'chat' | 'upload' | 'audio' | 'stream' | 'json'
  /** Headers of the answer to `OPTIONS`, which tell what the address can do. */
  readonly protocolHeaders?: Readonly<Record<string, string>>
  /** The answer is a file, whose bytes and length are sent as they are. */
  readonly asIs?: boolean
  /** The gateway's side checks the whole body. The route checks only what it needs itself. */
  readonly checkedBehind?: boolean
  /** Answers carry the headers of the chat protocol. */
  readonly inference?: boolean
  /** Default: the chat protocol. */
  readonly dialect?: Dialect
  /** Refuses a request by its headers, before the body is read. */
  readonly refuse?: (request: FastifyRequest, config: RestConfig) => void
  /** `undefined`: the route has already answered. */
  readonly handle: (call: Call) => Promise<RouteResponse | undefined>
}

export const ok = (body: unknown): RouteResponse => ({ status: 200, body })
export const created = (body: unknown): RouteResponse => ({ status: 201, body })
export const deleted = (object: string, id: string): RouteResponse => ok({ id, object, deleted: true })

/** Runs one operation over the link. Paths in its errors are in the caller's own names. */
export async function executeOnGateway<Data>(
  gateway: Link<string | null>,
  operation: Operation & { readonly query: OperationText<Data, never> },
  context: LinkContext<string | null>,
  names: ParamNames = {},
): Promise<Data> {
  return dataOf(await gateway.execute(operation, context), names)
}

/** The events of a subscription until the signal aborts, with which `next()` then rejects. An error ends the source, too. */
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

/** An error of the gateway as REST tells it: in the names of the caller's request, without what is GraphQL's own. */
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

/** The same error, for the field by its name in the caller's request. */
export function withParam(error: KisError, param: string, message: string = error.message): KisError {
  const { code, retryAfterMs, vendorCode, shouldRetry, rateLimits } = error
  return new KisError(code, message, { param, retryAfterMs, vendorCode, shouldRetry, rateLimits, cause: error })
}

/** Whether the caller wants a stream. Inference checks the rest of the request. */
export function isStream({ stream }: JsonObject): boolean {
  checkBoolean(stream, 'stream')
  return stream === true
}
