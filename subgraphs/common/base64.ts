/** Line breaks of MIME (RFC 2045) and PEM, and white space around the text. */
const BREAKS = /[ \t\r\n]+/g
const BREAK = [' ', '\t', '\r', '\n']

interface Base64 {
  /** The number of bytes that the text encodes, computed without decoding it. */
  readonly sizeBytes: number
  /** Null: the text is not base64. */
  decode(): Buffer | null
}

/**
 * Reads base64 in the standard or the URL-safe alphabet (RFC 4648, sections 4 and 5), padded or not, in one line or
 * many. All code here that reads the whole text is native: a regular expression takes 0.1 s for 25 MiB.
 */
export function readBase64(text: string): Base64 {
  const joined = BREAK.some((character) => text.includes(character)) ? text.replace(BREAKS, '') : text
  const padding = joined.endsWith('==') ? 2 : joined.endsWith('=') ? 1 : 0
  const digits = joined.length - padding
  const sizeBytes = Math.floor((digits * 3) / 4)
  return {
    sizeBytes,
    decode() {
      if (digits % 4 === 1 || (padding > 0 && joined.length % 4 !== 0) || !isAscii(joined)) return null
      const bytes = Buffer.from(joined, 'base64')
      // Buffer skips characters that are not base64, so the result has fewer bytes.
      return bytes.length === sizeBytes ? bytes : null
    },
  }
}

/** Buffer may confuse a character with another one that has the same low byte. */
function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length
}
