export interface DecodedText {
  readonly text: string
  /** A label of the Encoding standard: `utf-8`, `utf-16le`, `utf-16be`, `windows-1256`, `windows-1252`. */
  readonly charset: string
  /** Bytes that the charset has no character for and that became U+FFFD. */
  readonly replaced: number
}

/** Bytes that decide between charsets; what a text is shows early, and the rest of a long one is only decoded. */
const SAMPLE_BYTES = 256 * 1024

/** Share of a UTF-16 sample whose high bytes must be those of ASCII or Arabic. */
const LEAST_UTF16_SHARE = 0.7

/** Broken sequences per whole multi-byte sequence up to which a text is damaged UTF-8 rather than another charset. */
const MAX_BROKEN_UTF8_SHARE = 0.05

/**
 * Decodes text of unknown charset. Order: byte order mark, UTF-16 by its pattern of high bytes, valid UTF-8, `declared` (an HTML page's
 * own label), UTF-8 with a few broken bytes, and last the 8-bit code pages windows-1256 (when its letters read as Arabic) and windows-1252.
 */
export function decodeText(bytes: Uint8Array, declared?: string): DecodedText {
  const marked = charsetOfMark(bytes) ?? utf16WithoutMark(bytes)
  if (marked) return decodeAs(bytes, marked)
  const strict = decodeStrictly(bytes, 'utf-8')
  if (strict !== undefined) return { text: strict, charset: 'utf-8', replaced: 0 }
  const label = declared && knownCharset(declared)
  if (label && label !== 'utf-8') return decodeAs(bytes, label)
  if (isDamagedUtf8(bytes)) return decodeAs(bytes, 'utf-8')
  return decodeAs(bytes, readsAsArabic(bytes.subarray(0, SAMPLE_BYTES)) ? 'windows-1256' : 'windows-1252')
}

/** True when the bytes look like no text in any of the charsets. A head of the file is enough. */
export function looksBinary(head: Uint8Array): boolean {
  if (charsetOfMark(head) ?? utf16WithoutMark(head)) return false
  let controls = 0
  for (const byte of head) {
    if (byte === 0) return true
    const isControl = byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0c && byte !== 0x0d && byte !== 0x1a && byte !== 0x1b
    if (isControl || byte === 0x7f) controls += 1
  }
  return controls * 20 > head.length
}

function charsetOfMark(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8'
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  return undefined
}

/**
 * In UTF-16 of Arabic or English every second byte is 0x06 or 0x00, which no 8-bit text holds. Small binary numbers look alike,
 * so most of the characters that come out must be letters, spaces or printable ASCII.
 */
function utf16WithoutMark(bytes: Uint8Array): string | undefined {
  const sample = bytes.subarray(0, Math.min(bytes.length, SAMPLE_BYTES) & ~1)
  if (sample.length < 4) return undefined
  for (const [charset, high] of [
    ['utf-16le', 1],
    ['utf-16be', 0],
  ] as const) {
    let fitting = 0
    for (let at = 0; at < sample.length; at += 2) {
      const unit = (sample[at + high]! << 8) | sample[at + 1 - high]!
      const isAscii = (unit >= 0x20 && unit < 0x7f) || unit === 0x09 || unit === 0x0a || unit === 0x0d
      if (isAscii || (unit >= 0x0600 && unit <= 0x06ff)) fitting += 1
    }
    if (fitting * 2 >= sample.length * LEAST_UTF16_SHARE && sample.some((byte) => byte === 0 || byte === 6)) return charset
  }
  return undefined
}

function isDamagedUtf8(bytes: Uint8Array): boolean {
  const text = new TextDecoder('utf-8').decode(bytes.subarray(0, SAMPLE_BYTES))
  let broken = 0
  let whole = 0
  for (const char of text) {
    if (char === '\ufffd') broken += 1
    else if (char > '\u007f') whole += 1
  }
  return whole > 0 && broken <= Math.max(1, whole * MAX_BROKEN_UTF8_SHARE)
}

/** Bytes of windows-1256 that are Arabic letters, and among them the fourteen that make up four fifths of running Arabic. */
const ARABIC_LETTERS = bytesOf1256(/\p{Script=Arabic}/u)
const COMMON_LETTERS = bytesOf1256(/[اليمنورتةبهعدس]/u)

function bytesOf1256(pattern: RegExp): ReadonlySet<number> {
  const decoder = new TextDecoder('windows-1256')
  return new Set(Array.from({ length: 128 }, (_, index) => index + 128).filter((byte) => pattern.test(decoder.decode(Uint8Array.of(byte)))))
}

/** Arabic words are runs of high bytes, mostly common letters; accented letters of Latin words stand alone between ASCII ones. */
function readsAsArabic(sample: Uint8Array): boolean {
  let letters = 0
  let beside = 0
  let common = 0
  for (let at = 0; at < sample.length; at += 1) {
    const byte = sample[at]!
    if (!ARABIC_LETTERS.has(byte)) continue
    letters += 1
    if (ARABIC_LETTERS.has(sample[at - 1] ?? 0) || ARABIC_LETTERS.has(sample[at + 1] ?? 0)) beside += 1
    if (COMMON_LETTERS.has(byte)) common += 1
  }
  return letters > 0 && beside >= letters * 0.6 && common >= letters * 0.5
}

function decodeAs(bytes: Uint8Array, charset: string): DecodedText {
  const text = new TextDecoder(charset).decode(bytes)
  return { text, charset, replaced: text.split('\ufffd').length - 1 }
}

function decodeStrictly(bytes: Uint8Array, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function knownCharset(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding
  } catch {
    return undefined
  }
}
