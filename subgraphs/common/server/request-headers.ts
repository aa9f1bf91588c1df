import type { IncomingHttpHeaders } from 'node:http'

/** The id appears in logs and in responses. Other characters could break them. */
const ACCEPTED = /^[A-Za-z0-9_.:-]{1,128}$/

/**
 * Returns the client's id of its request, if it is fit for logs. The service's own id stays beside it, because clients
 * repeat theirs.
 */
export function readClientRequestId(headers: IncomingHttpHeaders): string | undefined {
  const sent = [headers['x-client-request-id'], headers['x-request-id']]
  return sent.find((id): id is string => typeof id === 'string' && ACCEPTED.test(id))
}

/** Returns the header that repeats the client's own id. */
export function clientRequestIdHeader(headers: IncomingHttpHeaders): { readonly 'x-client-request-id'?: string } {
  const id = readClientRequestId(headers)
  return id === undefined ? {} : { 'x-client-request-id': id }
}

/** Returns whether the client accepts a body with this content coding (RFC 9110, section 12.5.3). `*` is ignored. */
export function acceptsEncoding({ 'accept-encoding': accepted = '' }: IncomingHttpHeaders, encoding: string): boolean {
  const offered = String(accepted)
    .split(',')
    .map((each) => each.split(';').map((part) => part.trim()))
    .find(([name]) => name === encoding)
  return offered !== undefined && !offered.some((part) => /^q=0(\.0*)?$/.test(part))
}
