import { hash } from 'node:crypto'

/** Longest access token. Common servers issue 1,000 to 3,000 characters. */
const MAX_TOKEN_LENGTH = 8_192
const TOKEN_SHAPE = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Returns whether a text may be an access token (a JWT), and not a key. */
export const isToken = (text: string): boolean => text.length <= MAX_TOKEN_LENGTH && TOKEN_SHAPE.test(text)

/** Returns a short name of a token, for caches: tokens are long. It takes some 10 µs. */
export const nameOfToken = (token: string): string => hash('sha256', token, 'base64')

/** 256 random bits in base64url. The prefix lets secret scanners recognize a leaked token. */
const TOKEN = /^kis_session_[\w-]{43}$/

/** Returns whether a text has the form of a session token. The session need not exist. */
export const isSessionToken = (text: string): boolean => TOKEN.test(text)

/** `bytes`: 32 random bytes. */
export function sessionTokenFrom(bytes: Uint8Array): string {
  if (bytes.length !== 32) throw new RangeError('a token is made of 32 bytes')
  return `kis_session_${Buffer.from(bytes).toString('base64url')}`
}

/** An authorization server whose access tokens count as API keys. */
export interface OAuthSettings {
  /** The claim `iss`: an http(s) URL without a query. */
  readonly issuer: string
  /** The URL of `/mcp` as clients use it. A token must have it as an audience (RFC 8707). */
  readonly resource: string
  /** The claim with the id of the API key that the token stands for. */
  readonly keyClaim: string
}
