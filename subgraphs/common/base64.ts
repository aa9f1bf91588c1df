/** Line breaks as in MIME (RFC 2045) and PEM, and white space around the text. */
const BREAKS = /[ \t\r\n]+/g
/** The alphabets of RFC 4648, sections 4 and 5. */
const OTHER = /[^A-Za-z0-9+/_-]/

export interface Base64 {
  /** The number of bytes that the text stands for, told without decoding it. */
  readonly sizeBytes: number
  /** Null: the text is not base64. */
  decode(): Buffer | null
}

/**
 * Reads base64 in the standard or the URL-safe alphabet, padded or not, in one line or many. The whole text is checked,
 * because Buffer skips what it does not know.
 */
export function readBase64(text: string): Base64 {
  const joined = text.replace(BREAKS, '')
  const padding = joined.endsWith('==') ? 2 : joined.endsWith('=') ? 1 : 0
  const digits = joined.length - padding
  return {
    sizeBytes: Math.floor((digits * 3) / 4),
    decode() {
      const isWhole = digits % 4 !== 1 && (padding === 0 || joined.length % 4 === 0) && !OTHER.test(joined.slice(0, digits))
      return isWhole ? Buffer.from(joined, 'base64') : null
    },
  }
}
