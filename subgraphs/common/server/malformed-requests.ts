import type { Duplex } from 'node:stream'
import { ERRORS } from '../../../schema/errors.ts'
import { KisError } from '../errors.ts'

/**
 * How long to read what the client is still sending. Closing at once would reset the connection, and the response would
 * be lost.
 */
const LINGER_MS = 2_000

/** Errors by the codes of Node's HTTP parser. */
const ERROR_OF: Readonly<Record<string, () => KisError>> = {
  HPE_HEADER_OVERFLOW: () => new KisError('headers_too_large', 'The headers of the request exceed 16 KiB. Send fewer or shorter ones.'),
  ERR_HTTP_REQUEST_TIMEOUT: () => new KisError('request_timeout', 'The request did not arrive in time.'),
}

/**
 * Responds to bytes that are not an HTTP request, and so never reach an app, with an error of the protocol. `toBody`
 * formats it for the clients.
 */
export function respondToMalformedRequest(
  { code, rawPacket }: NodeJS.ErrnoException & { readonly rawPacket?: unknown },
  socket: Duplex,
  requestId: string,
  toBody: (error: KisError) => unknown,
): void {
  const { _httpMessage: response } = socket as Duplex & { readonly _httpMessage?: { readonly headersSent: boolean } | null }
  if (code === 'ECONNRESET' || !socket.writable || response?.headersSent) {
    // The response is complete, and the rest of the request is still being read. No second response is possible.
    if (!socket.writableEnded) socket.destroy()
    return
  }
  const error = ERROR_OF[code ?? '']?.() ?? new KisError('invalid_request', 'The request is not valid HTTP.')
  const { status } = ERRORS[error.code]
  const body = JSON.stringify(toBody(error))
  const head = [
    `HTTP/1.1 ${status} ${error.code}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    `x-should-retry: ${error.shouldRetry}`,
    'access-control-allow-origin: *',
    'connection: close',
  ]
  // A response to HEAD has no body (RFC 9110, section 9.3.2). The client would read a body as the next response.
  const isHead = rawPacket instanceof Buffer && rawPacket.toString('latin1', 0, 5) === 'HEAD '
  socket.end(`${head.join('\r\n')}\r\n\r\n${isHead ? '' : body}`)
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}
