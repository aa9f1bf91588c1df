import { ERRORS, type ErrorCode } from '../../schema/errors.ts'
import type { KisError } from '../../subgraphs/common/errors.ts'
import type { Dialect } from '../http/route.ts'

/**
 * Codes with another status in the Messages API. There the status alone distinguishes an empty wallet and an overload
 * from a rate limit.
 */
const STATUSES: Partial<Readonly<Record<ErrorCode, number>>> = {
  insufficient_quota: 402,
  engine_unavailable: 529,
  service_unavailable: 529,
}

/**
 * The API's error types by status. Other statuses below 500 are an `invalid_request_error`, the rest an `api_error`.
 */
const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/**
 * The API's own codes for refused fields. A client that reads `thread_unsupported_request` leaves the field out and
 * sends the whole conversation.
 */
const CODES_OF_FIELDS: Readonly<Record<string, string>> = { thread: 'thread_unsupported_request' }

/** Returns the body of an error in the Messages API. `details` holds the code and, if there is one, the path. */
export function messagesErrorBody(error: KisError, requestId: string) {
  const { code, message, param, vendorCode } = error
  const status = toMessagesStatus(error)
  const ownCode = param !== null && code === 'unsupported_value' ? CODES_OF_FIELDS[param] : undefined
  const details = { error_code: ownCode ?? code, ...(param !== null && { param }), ...(vendorCode !== null && { vendor_code: vendorCode }) }
  return {
    type: 'error' as const,
    error: { type: TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'), message, details },
    request_id: requestId,
  }
}

function toMessagesStatus({ code }: KisError): number {
  return STATUSES[code] ?? ERRORS[code].status
}

/** The dialect of Messages API clients, such as Anthropic's SDKs. */
export const MESSAGES_DIALECT: Dialect = {
  keyHeader: 'x-api-key',
  requestIdHeader: 'request-id',
  toStatus: toMessagesStatus,
  errorBody: messagesErrorBody,
}
