import type { IncomingHttpHeaders } from 'node:http'

/** Whether the client takes a body with this content coding (RFC 9110, section 12.5.3). `*` is not looked at. */
export function acceptsEncoding({ 'accept-encoding': accepted = '' }: IncomingHttpHeaders, encoding: string): boolean {
  const offered = String(accepted)
    .split(',')
    .map((each) => each.split(';').map((part) => part.trim()))
    .find(([name]) => name === encoding)
  return offered !== undefined && !offered.some((part) => /^q=0(\.0*)?$/.test(part))
}
