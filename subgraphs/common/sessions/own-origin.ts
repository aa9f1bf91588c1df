import type { IncomingHttpHeaders } from 'node:http'

/** A name or an address, and a port. Nothing else may enter examples that readers paste into a shell. */
const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/**
 * Returns the origin at which the reader has reached the service: `https://api.example`. Empty if the origin is
 * unclear. The service itself speaks http; a proxy that speaks https sends `x-forwarded-proto`.
 */
export function originOf(headers: IncomingHttpHeaders): string {
  const { host } = headers
  return host === undefined || !HOST.test(host) ? '' : `${isSecure(headers) ? 'https' : 'http'}://${host}`
}

/** Returns whether the reader speaks https with the proxy in front of the service. */
export function isSecure({ 'x-forwarded-proto': forwarded }: IncomingHttpHeaders): boolean {
  return String(forwarded).split(',', 1)[0]!.trim() === 'https'
}

/**
 * Returns whether a page of the service itself sent the request. Browsers send `sec-fetch-site`, which no page can
 * forge. Older browsers, and all browsers over plain http to another machine, send at least `origin`, but not with
 * every GET.
 */
export function isSameOrigin(headers: IncomingHttpHeaders): boolean {
  const { 'sec-fetch-site': site, origin } = headers
  return site === undefined ? isOwnOrigin(headers) : site === 'same-origin' && (origin === undefined || isOwnOrigin(headers))
}

/**
 * Returns whether `origin` is the origin at which the reader has reached the service. Every browser sends it when it
 * opens a socket.
 */
export function isOwnOrigin(headers: IncomingHttpHeaders): boolean {
  return headers.origin !== undefined && headers.origin === originOf(headers)
}
