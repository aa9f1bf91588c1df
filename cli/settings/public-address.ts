import type { IncomingMessage } from 'node:http'

/**
 * Returns a function that notes for a request that it came by https, if people reach the service at an https address
 * and the request names that host. So the cookie of a session is for https alone, whatever the proxy in front of the
 * service says.
 */
export function httpsAt(publicUrl: string | null): (request: Pick<IncomingMessage, 'headers'>) => void {
  const url = publicUrl === null ? null : new URL(publicUrl)
  if (url?.protocol !== 'https:') return () => {}
  return ({ headers }) => {
    if (headers.host?.toLowerCase() === url.host) headers['x-forwarded-proto'] = 'https'
  }
}
