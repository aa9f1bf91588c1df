import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { OperationText } from '../../schema/operations.ts'
import { checkBoolean } from '../../subgraphs/common/check.ts'
import { KisError, ServiceUnavailable } from '../../subgraphs/common/errors.ts'
import type { Link, LinkContext, Operation } from '../../subgraphs/common/link/link.ts'
import type { Clock } from '../../subgraphs/common/process/clock.ts'
import type { IdSource } from '../../subgraphs/common/process/ids.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import type { RestConfig } from '../config.ts'
import type { Method } from './openapi.ts'
import { type ParamNames, restParam } from './param-names.ts'
import type { EventStream } from './sse.ts'

export type JsonObject = Readonly<Record<string, unknown>>

export interface Answer {
  readonly status: number
  /** An object becomes JSON; a stream is sent as it is. */
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** One request, checked against the description of its operation. */
export interface Call {
  readonly params: Readonly<Record<string, string>>
  readonly query: JsonObject
  /** Empty for routes without a body. */
  readonly body: JsonObject
  readonly headers: IncomingHttpHeaders
  /** The header `Idempotency-Key`, for calls of models. */
  readonly idempotencyKey: string | undefined
  /** The header `Last-Event-ID`, by which clients of server-sent events go on after a cut. */
  readonly lastEventId: string | undefined
  /** Runs one operation at the gateway. `names` translates the paths of inputs in its errors. @throws {KisError} the gateway's first error. */
  ask<Data>(query: OperationText<Data, never>, variables?: JsonObject, names?: ParamNames): Promise<Data>
  /** Runs one operation for the caller also when the client is gone, for a bounded time; a failure is logged. */
  cleanUp(query: OperationText<unknown, never>, variables: JsonObject): Promise<void>
  /** Starts a subscription at the gateway. */
  subscribe(operation: Operation): ReturnType<Link['subscribe']>
  /** Its signal aborts when the client is gone, or the process is about to stop. */
  readonly context: LinkContext<string>
  readonly log: Log
  readonly clock: Clock
  readonly ids: IdSource
  /** `HEAD` on routes of `GET`. */
  readonly method: string
  /** Sets headers of the answer, or of the stream that has not begun yet. */
  setHeaders(headers: Readonly<Record<string, string>>): void
  /** Answers with server-sent events, once one is sent. */
  eventStream(): EventStream
}

/** How clients of another protocol than the chat protocol meet a route: where else their key stands, and what errors look like. */
export interface Dialect {
  /** Holds the key without `Bearer`, where there is no `Authorization: Bearer`. */
  readonly keyHeader?: string
  /** Bears the request's id beside `x-request-id`. */
  readonly requestIdHeader?: string
  statusOf(error: KisError): number
  errorBody(error: KisError, requestId: string): unknown
}

export interface Route {
  readonly method: Method
  /** As in `schema/openapi.yaml`. */
  readonly path: string
  /** The path's last parameter may hold slashes. */
  readonly slashes?: boolean
  /** Which limit its body has; default `json`. `audio` is a form, all others are JSON. */
  readonly body?: 'chat' | 'upload' | 'audio' | 'json'
  /** The body is only looked at as far as this route needs, because the gateway's side checks it whole. */
  readonly checkedBehind?: boolean
  /** Carries the headers of the chat protocol. */
  readonly inference?: boolean
  /** Default: that of the chat protocol. */
  readonly dialect?: Dialect
  /** Refuses a request by its headers, before its body is read. */
  readonly refuse?: (request: FastifyRequest, config: RestConfig) => void
  /** `undefined`: the route has answered by itself. */
  readonly handle: (call: Call) => Promise<Answer | undefined>
}

export const ok = (body: unknown): Answer => ({ status: 200, body })
export const created = (body: unknown): Answer => ({ status: 201, body })
export const deleted = (object: string, id: string): Answer => ok({ id, object, deleted: true })

/** Runs one operation over the link, with the paths in its errors in the caller's own names. */
export async function askGateway<Data>(
  gateway: Link<string | null>,
  operation: Operation & { readonly query: OperationText<Data, never> },
  context: LinkContext<string | null>,
  names: ParamNames = {},
): Promise<Data> {
  const { data, errors } = await gateway.execute(operation, context)
  if (errors?.length) throw inRestNames(KisError.fromGraphQL(errors[0]!), names)
  if (!data) throw new ServiceUnavailable('A part of the service')
  return data as Data
}

export function inRestNames(error: KisError, names: ParamNames = {}): KisError {
  return error.param === null ? error : withParam(error, restParam(error.param, names))
}

/** The same error about a field that its reader knows by this name. */
export function withParam(error: KisError, param: string, message: string = error.message): KisError {
  const { code, retryAfterMs, vendorCode, shouldRetry, rateLimits } = error
  return new KisError(code, message, { param, retryAfterMs, vendorCode, shouldRetry, rateLimits, cause: error })
}

/** Of a request that inference checks: this field alone decides between an answer and a stream. */
export function isStream({ stream }: JsonObject): boolean {
  checkBoolean(stream, 'stream')
  return stream === true
}
