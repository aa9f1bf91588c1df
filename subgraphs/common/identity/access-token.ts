import { hash } from 'node:crypto'

/** Characters of an access token. Those of the usual servers have 1,000 to 3,000. */
const MAX_TOKEN_LENGTH = 8_192
const TOKEN_SHAPE = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Whether a text may be an access token (a JWT), and not a key. */
export const isToken = (text: string): boolean => text.length <= MAX_TOKEN_LENGTH && TOKEN_SHAPE.test(text)

/** A short name of a token. A token is long, and what is remembered of it should not be. It takes some 10 µs. */
export const nameOfToken = (token: string): string => hash('sha256', token, 'base64')
