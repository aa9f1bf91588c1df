import { ERRORS } from '../../schema/errors.ts'
import type { KisError } from '../../subgraphs/common/errors.ts'
import type { Dialect } from '../http/route.ts'

/** Codes from JSON-RPC 2.0, section 5.1. The last of them is the first code that servers may define. */
const INVALID_REQUEST = -32600
const INTERNAL = -32603
const SERVER_ERROR = -32000

/**
 * Returns an error of the transport, without a request ID: the request has not been read. `data` holds our own fields.
 */
function jsonRpcError({ code, message, param, retryAfterMs }: KisError) {
  const { status } = ERRORS[code]
  return {
    jsonrpc: '2.0' as const,
    id: null,
    error: {
      code: status === 400 ? INVALID_REQUEST : status === 500 ? INTERNAL : SERVER_ERROR,
      message,
      data: { code, ...(param !== null && { param }), ...(retryAfterMs !== null && { retry_after_ms: retryAfterMs }) },
    },
  }
}

/** The dialect of Model Context Protocol clients. */
export const MCP_DIALECT: Dialect = {
  toStatus: ({ code }) => ERRORS[code].status,
  errorBody: jsonRpcError,
}
