import type { FastifyReply } from 'fastify'
import { ERRORS } from '../../schema/errors.ts'
import { isAbort, KisError } from '../../subgraphs/common/errors.ts'
import type { OAuthSettings } from '../../subgraphs/common/identity/credentials.ts'
import type { Log } from '../../subgraphs/common/process/log.ts'
import { sizeText } from '../../subgraphs/common/sizes.ts'
import { createChallenge } from './oauth-metadata.ts'
import { rateLimitHeaders } from './rate-limits.ts'
import type { Dialect } from './route.ts'

/** Returns the body of an error in the chat protocol. */
export function errorBody({ code, message, param, vendorCode }: KisError) {
  return { error: { message, type: ERRORS[code].type, param, code, ...(vendorCode !== null && { vendor_code: vendorCode }) } }
}

/** Sends the error in the format of the route's clients. */
export function sendError(reply: FastifyReply, error: KisError, oauth: OAuthSettings | null): void {
  const { routeOptions, rest, headers: sent } = reply.request
  const dialect = routeOptions.config?.dialect
  if (error.code === 'invalid_api_key') reply.header('www-authenticate', createChallenge(sent.authorization, oauth))
  const { status, headers, body } = toErrorResponse(error, dialect, rest.id)
  reply.code(status).headers(headers).send(body)
}

/** Returns the response to an error, in the format of the route's clients. */
export function toErrorResponse(error: KisError, dialect: Dialect | undefined, requestId: string) {
  const { retryAfterMs } = error
  return {
    status: dialect?.toStatus(error) ?? ERRORS[error.code].status,
    headers: {
      'x-should-retry': String(error.shouldRetry),
      ...rateLimitHeaders(error.rateLimits),
      ...(retryAfterMs !== null && { 'retry-after-ms': retryAfterMs, 'retry-after': Math.ceil(retryAfterMs / 1000) }),
      'content-type': 'application/json; charset=utf-8',
    },
    body: JSON.stringify(dialect?.errorBody(error, requestId) ?? errorBody(error)),
  }
}

/** Converts anything thrown into a KisError. A defect is logged, and becomes a bare `internal`. */
export function toKisError(thrown: unknown, log: Log, requestId: string, bodyLimit?: number): KisError {
  if (thrown instanceof KisError) {
    if (thrown.code === 'internal') log.error({ err: thrown, requestId }, 'request failed')
    return thrown
  }
  if (isAbort(thrown))
    return new KisError('service_unavailable', 'The request was aborted before the service responded.', { retryAfterMs: 1_000 })
  const { code, statusCode } = thrown as { readonly code?: unknown; readonly statusCode?: unknown }
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE' && bodyLimit !== undefined)
    return new KisError('payload_too_large', `The body has more than ${sizeText(bodyLimit)}, the limit of this address.`)
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return notJson()
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500)
    return new KisError('invalid_request', 'The request could not be read.', { cause: thrown })
  log.error({ err: thrown, requestId }, 'request failed')
  return new KisError('internal', 'The service failed to process the request.')
}

export function notJson(): KisError {
  return new KisError('invalid_request', 'Send the body as JSON, with `content-type: application/json`.')
}
