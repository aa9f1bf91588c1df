import { hash } from 'node:crypto'

/** Characters of an access token. Those of the usual servers have 1,000 to 3,000. */
const MAX_TOKEN_LENGTH = 8_192
const TOKEN_SHAPE = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Whether a text may be an access token (a JWT), and not a key. */
export const isToken = (text: string): boolean => text.length <= MAX_TOKEN_LENGTH && TOKEN_SHAPE.test(text)

/** A short name of a token. A token is long, and what is remembered of it should not be. It takes some 10 µs. */
export const nameOfToken = (token: string): string => hash('sha256', token, 'base64')

/** 256 random bits in base64url. The name in front lets secret scanners know a token that leaked. */
const TOKEN = /^kis_session_[\w-]{43}$/

/** Whether a text has the form of a session's token. Such a session need not exist. */
export const isSessionToken = (text: string): boolean => TOKEN.test(text)

/** `bytes`: 32 random ones. */
export function sessionTokenFrom(bytes: Uint8Array): string {
  if (bytes.length !== 32) throw new RangeError('a token is made of 32 bytes')
  return `kis_session_${Buffer.from(bytes).toString('base64url')}`
}

/** An authorization server whose access tokens count as API keys. */
export interface OAuthSettings {
  /** As in the claim `iss`: an http(s) address without a query. */
  readonly issuer: string
  /** The address of `/mcp` as clients use it. A token must have it as an audience (RFC 8707). */
  readonly resource: string
  /** The claim with the id of the API key that the token counts as. */
  readonly keyClaim: string
}
