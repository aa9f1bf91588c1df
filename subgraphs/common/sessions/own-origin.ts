import type { IncomingHttpHeaders } from 'node:http'

/** A name or an address, and a port. Nothing else gets into examples that readers paste into a shell. */
const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/**
 * Where the reader has reached the service: `https://api.example`. Empty if that is unclear. The service itself speaks
 * http; a proxy that speaks https says so in `x-forwarded-proto`.
 */
export function originOf(headers: IncomingHttpHeaders): string {
  const { host } = headers
  return host === undefined || !HOST.test(host) ? '' : `${isSecure(headers) ? 'https' : 'http'}://${host}`
}

/** Whether the reader speaks https with the proxy in front of the service. */
export function isSecure({ 'x-forwarded-proto': forwarded }: IncomingHttpHeaders): boolean {
  return String(forwarded).split(',', 1)[0]!.trim() === 'https'
}

/**
 * Whether a page of the service itself sent the request. Browsers say it in `sec-fetch-site`, which no page can forge.
 * Older ones, and all over plain http to another machine, send at least `origin`, but not with every GET.
 */
export function isSameOrigin(headers: IncomingHttpHeaders): boolean {
  const { 'sec-fetch-site': site, origin } = headers
  return site === undefined ? isOwnOrigin(headers) : site === 'same-origin' && (origin === undefined || isOwnOrigin(headers))
}

/** Whether `origin` is where the reader has reached the service. Every browser sends it when it opens a socket. */
export function isOwnOrigin(headers: IncomingHttpHeaders): boolean {
  return headers.origin !== undefined && headers.origin === originOf(headers)
}
