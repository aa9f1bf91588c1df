import type { IncomingHttpHeaders } from 'node:http'
import { KisError } from '../../errors.ts'

/**
 * Items of lists and fields of objects of one body. 300,000 tokens to embed are the longest list; the longest
 * conversation has some 20,000 fields.
 */
const MAX_WEIGHT = 600_000
/** Weight of a field in items of a list: creating and handling one field takes as long as this many items. */
const FIELD_WEIGHT = 5

const [QUOTE, BACKSLASH] = [0x22, 0x5c]

/**
 * Parses JSON as `JSON.parse` does. A body of millions of tiny values would take seconds of the event loop and a
 * gigabyte, so values are counted first.
 * @throws {KisError} `payload_too_large`
 * @throws {SyntaxError}
 */
export function parseLimitedJson(text: string): unknown {
  checkJsonSize(text)
  return JSON.parse(text)
}

/** @throws {KisError} `payload_too_large`: the text has more values than a body may have. */
export function checkJsonSize(text: string): void {
  // A text this short cannot have too many values.
  if (text.length <= MAX_WEIGHT / FIELD_WEIGHT) return
  let weight = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) at = endOfString(text, at)
    else if (code === 0x2c || code === 0x5b || code === 0x7b) weight += 1
    else if (code === 0x3a) weight += FIELD_WEIGHT
    if (weight > MAX_WEIGHT)
      throw new KisError(
        'payload_too_large',
        `The body has too many values: at most ${MAX_WEIGHT} items of lists, of which each field of an object counts as ${FIELD_WEIGHT + 1}.`,
      )
  }
}

/** Returns the end of the string that starts at the quote. */
function endOfString(text: string, quoteAt: number): number {
  for (let end = text.indexOf('"', quoteAt + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

/**
 * Refuses compressed bodies. The service does not inflate them: one of 20 MB could become gigabytes. Unrefused, they
 * would be treated as invalid JSON or as files of an unknown format.
 * @throws {KisError} `unsupported_value`: the body is compressed
 */
export function requirePlainBody({ 'content-encoding': encoding }: IncomingHttpHeaders): void {
  if (['', 'identity'].includes(encoding?.trim().toLowerCase() ?? '')) return
  throw new KisError(
    'unsupported_value',
    'The service does not accept compressed bodies. Send the body uncompressed, without `content-encoding`.',
    {
      param: 'content-encoding',
    },
  )
}
