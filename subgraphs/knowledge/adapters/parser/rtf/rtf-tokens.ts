type RtfToken =
  | { readonly kind: 'open' }
  | { readonly kind: 'close' }
  | { readonly kind: 'optional' }
  | { readonly kind: 'word'; readonly name: string; readonly value: number | undefined }
  /** Bytes of text in the charset of the font. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }

const BACKSLASH = 0x5c
const OPEN = 0x7b
const CLOSE = 0x7d
const APOSTROPHE = 0x27
const MAX_WORD_CHARS = 32

/** Yields the tokens of an RTF file (RTF specification 1.9.1). Skips line ends and the data of `\bin`. */
export function* rtfTokens(bytes: Uint8Array): Generator<RtfToken> {
  let at = 0
  while (at < bytes.length) {
    const byte = bytes[at]!
    if (byte === OPEN || byte === CLOSE) {
      yield { kind: byte === OPEN ? 'open' : 'close' }
      at += 1
    } else if (byte !== BACKSLASH) {
      const start = at
      while (at < bytes.length && !isSpecial(bytes[at]!)) at += 1
      if (at > start) yield { kind: 'bytes', bytes: bytes.subarray(start, at) }
      else at += 1
    } else if (isLetter(bytes[at + 1])) {
      const { name, value, end } = wordAt(bytes, at + 1)
      at = end
      if (name === 'bin') at += Math.max(0, value ?? 0)
      else yield { kind: 'word', name, value }
    } else {
      const next = bytes[at + 1]
      at += 2
      if (next === APOSTROPHE) {
        const code = Number.parseInt(String.fromCharCode(bytes[at] ?? 0, bytes[at + 1] ?? 0), 16)
        if (!Number.isNaN(code)) yield { kind: 'bytes', bytes: Uint8Array.of(code) }
        at += 2
      } else if (next === 0x2a) yield { kind: 'optional' }
      else if (next === 0x7e) yield { kind: 'word', name: 'nbsp', value: undefined }
      else if (next === 0x5f) yield { kind: 'word', name: 'nbhyphen', value: undefined }
      else if (next === 0x0a || next === 0x0d) yield { kind: 'word', name: 'par', value: undefined }
      else if (next === BACKSLASH || next === OPEN || next === CLOSE) yield { kind: 'bytes', bytes: Uint8Array.of(next) }
    }
  }
}

function wordAt(bytes: Uint8Array, start: number): { readonly name: string; readonly value: number | undefined; readonly end: number } {
  let at = start
  while (at - start < MAX_WORD_CHARS && isLetter(bytes[at])) at += 1
  const name = text(bytes.subarray(start, at))
  const digits = at
  if (bytes[at] === 0x2d) at += 1
  while (at - digits < 11 && isDigit(bytes[at])) at += 1
  const value = at > digits ? Number.parseInt(text(bytes.subarray(digits, at)), 10) : Number.NaN
  // One space after a word belongs to the word.
  if (bytes[at] === 0x20) at += 1
  return { name, value: Number.isSafeInteger(value) ? value : undefined, end: at }
}

function isSpecial(byte: number): boolean {
  return byte === BACKSLASH || byte === OPEN || byte === CLOSE || byte === 0x0a || byte === 0x0d
}

function isLetter(byte: number | undefined): boolean {
  return byte !== undefined && ((byte >= 0x61 && byte <= 0x7a) || (byte >= 0x41 && byte <= 0x5a))
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
