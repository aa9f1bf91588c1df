import type { IncomingHttpHeaders } from 'node:http'
import { isSessionToken } from '../identity/credentials.ts'
import { isOwnOrigin, isSameOrigin, isSecure } from './own-origin.ts'

/** No page of another host, and nothing over http, can set a cookie with this prefix (RFC 6265bis, section 4.1.3.2). */
const SECURE_NAME = '__Host-kis_session'
const PLAIN_NAME = 'kis_session'

const cookieName = (headers: IncomingHttpHeaders) => (isSecure(headers) ? SECURE_NAME : PLAIN_NAME)

/**
 * Returns the session token with which the portal's own pages send this request. Null: there is none, or it does not
 * count, because the request may come from another page, or has a key.
 */
export function sessionOf(headers: IncomingHttpHeaders): string | null {
  return !sendsKey(headers) && isSameOrigin(headers) ? readSessionCookie(headers) : null
}

/** Returns the same token for a request to open a socket. */
export function sessionOfSocket(headers: IncomingHttpHeaders): string | null {
  return !sendsKey(headers) && isOwnOrigin(headers) ? readSessionCookie(headers) : null
}

/** The reference at `/docs` sends `Bearer` alone while its field for the key is empty. */
function sendsKey({ authorization }: IncomingHttpHeaders): boolean {
  return authorization !== undefined && !/^bearer *$/i.test(authorization)
}

/** Returns the token in the cookie, whatever page sends it. */
export function readSessionCookie(headers: IncomingHttpHeaders): string | null {
  const prefix = `${cookieName(headers)}=`
  for (const pair of headers.cookie?.split(';') ?? []) {
    const text = pair.trim()
    if (!text.startsWith(prefix)) continue
    const token = text.slice(prefix.length)
    return isSessionToken(token) ? token : null
  }
  return null
}

/**
 * Returns the value of `set-cookie` that starts a session; `expiresAt`: when the session ends. `token` null: the cookie
 * is deleted.
 */
export function sessionCookie(headers: IncomingHttpHeaders, token: string | null, expiresAt = new Date(0)): string {
  const secure = isSecure(headers) ? '; Secure' : ''
  return `${cookieName(headers)}=${token ?? ''}; Path=/; Expires=${expiresAt.toUTCString()}; HttpOnly; SameSite=Strict${secure}`
}
