import type { Duplex } from 'node:stream'
import { ERRORS } from '../schema/errors.ts'
import { KisError } from '../subgraphs/common/errors.ts'
import type { IdSource } from '../subgraphs/common/ids.ts'
import { errorBody } from './errors.ts'

/** What the client is still sending is read so long: closing on it would reset the connection, and the answer be lost. */
const LINGER_MS = 2_000

/** What Node's HTTP parser says of it. */
const ERROR_OF: Readonly<Record<string, () => KisError>> = {
  HPE_HEADER_OVERFLOW: () => new KisError('headers_too_large', 'The headers of the request are over 16 KiB.'),
  ERR_HTTP_REQUEST_TIMEOUT: () => new KisError('request_timeout', 'The request did not arrive in time.'),
}

/** Answers what is no HTTP request, of which no app hears, with an error of the protocol all the same. */
export function answerUnreadable({ code }: NodeJS.ErrnoException, socket: Duplex, ids: IdSource): void {
  const { _httpMessage: underWay } = socket as Duplex & { readonly _httpMessage?: { readonly headersSent: boolean } | null }
  if (code === 'ECONNRESET' || !socket.writable || underWay?.headersSent) {
    // After an answer of ours has ended the rest of the request is read as before; nothing more can be said.
    if (!socket.writableEnded) socket.destroy()
    return
  }
  const error = ERROR_OF[code ?? '']?.() ?? new KisError('invalid_request', 'The request is not valid HTTP.')
  const { status } = ERRORS[error.code]
  const body = JSON.stringify(errorBody(error))
  const head = [
    `HTTP/1.1 ${status} ${error.code}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${ids('req')}`,
    `x-should-retry: ${error.shouldRetry}`,
    'access-control-allow-origin: *',
    'connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}
