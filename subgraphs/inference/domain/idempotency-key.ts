import { createHash } from 'node:crypto'
import { checkLength, refuse, textAt } from '../../common/check.ts'
import { KisError } from '../../common/errors.ts'

/** As in other services with such keys. A UUID has 36. */
const MAX_CHARACTERS = 255
const VISIBLE_ASCII = /^[!-~]+$/
/** As deep as a request of the chat protocol may be. */
const MAX_DEPTH = 64

/** @throws {KisError} the key is not a text of 1 to 255 characters */
export function checkIdempotencyKey(value: unknown): string {
  const key = textAt(value, 'idempotencyKey')
  checkLength(key, 'idempotencyKey', MAX_CHARACTERS)
  if (!VISIBLE_ASCII.test(key))
    refuse('invalid_request', 'idempotencyKey', `An idempotency key has 1 to ${MAX_CHARACTERS} visible ASCII characters and no spaces.`)
  return key
}

/**
 * SHA-256 in hexadecimal of the operation and its request. Equal JSON values have the same digest, whatever the order
 * of their fields.
 */
export function requestDigest(operation: string, request: unknown): string {
  const hash = createHash('sha256')
  feed({ operation, request }, 0, (text) => hash.update(text))
  return hash.digest('hex')
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Canonical JSON (RFC 8785), piece by piece. Fields without a value are skipped. */
function feed(value: unknown, depth: number, write: (text: string) => unknown): void {
  if (typeof value !== 'object' || value === null) {
    write(JSON.stringify(value ?? null))
    return
  }
  if (depth > MAX_DEPTH + 1) throw new KisError('invalid_request', `The request is nested deeper than ${MAX_DEPTH} levels.`)
  const isList = Array.isArray(value)
  const fields = isList
    ? value.keys()
    : Object.keys(value)
        .filter((name) => (value as Record<string, unknown>)[name] !== undefined)
        .sort()
  write(isList ? '[' : '{')
  let separator = ''
  for (const field of fields) {
    write(isList ? separator : `${separator}${JSON.stringify(field)}:`)
    feed((value as Record<string | number, unknown>)[field], depth + 1, write)
    separator = ','
  }
  write(isList ? ']' : '}')
}
