import type { FastifyRequest } from 'fastify'

/** A name or an address, and a port. Nothing else gets into examples that readers paste into a shell. */
const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/** Where the reader has reached the service: `https://api.example`. Empty, so that paths are relative, if that is unclear. */
export function originOf({ headers, protocol }: Pick<FastifyRequest, 'headers' | 'protocol'>): string {
  const { host } = headers
  if (host === undefined || !HOST.test(host)) return ''
  const forwarded = headers['x-forwarded-proto']
  return `${forwarded === 'https' || forwarded === 'http' ? forwarded : protocol}://${host}`
}
