import type { IncomingHttpHeaders } from 'node:http'

/** It goes into logs and back to the client. Other characters could break them. */
const ACCEPTED = /^[A-Za-z0-9_.:-]{1,128}$/

/**
 * The id that the client gave its request, if it is fit for logs. The service's own id stays beside it: clients repeat
 * theirs.
 */
export function readClientRequestId(headers: IncomingHttpHeaders): string | undefined {
  const sent = [headers['x-client-request-id'], headers['x-request-id']]
  return sent.find((id): id is string => typeof id === 'string' && ACCEPTED.test(id))
}

/** Tells the client its own id again. */
export function clientRequestIdHeader(headers: IncomingHttpHeaders): { readonly 'x-client-request-id'?: string } {
  const id = readClientRequestId(headers)
  return id === undefined ? {} : { 'x-client-request-id': id }
}

/** Whether the client takes a body with this content coding (RFC 9110, section 12.5.3). `*` is not looked at. */
export function acceptsEncoding({ 'accept-encoding': accepted = '' }: IncomingHttpHeaders, encoding: string): boolean {
  const offered = String(accepted)
    .split(',')
    .map((each) => each.split(';').map((part) => part.trim()))
    .find(([name]) => name === encoding)
  return offered !== undefined && !offered.some((part) => /^q=0(\.0*)?$/.test(part))
}
