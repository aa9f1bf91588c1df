import type { DocumentBuilder } from './readers/document-builder.ts'
export interface DecodedText {
  readonly text: string
  /** A label of the Encoding standard, `windows-1256` for instance, or `x-mac-arabic`, which it does not have. */
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
 * Decodes text of unknown charset. Order: byte order mark, UTF-16 by its pattern of high bytes, valid UTF-8, `declared`
 * (an HTML page's own label), UTF-8 with a few broken bytes, and last the 8-bit code pages: windows-1256, ISO-8859-6 or
 * MacArabic, when its letters read as Arabic in one of them, and windows-1252.
 */
export function decodeText(bytes: Uint8Array, declared?: string): DecodedText {
  const marked = charsetOfMark(bytes) ?? utf16WithoutMark(bytes)
  if (marked) return decodeAs(bytes, marked)
  const strict = decodeStrictly(bytes, 'utf-8')
  if (strict !== undefined) return { text: strict, charset: 'utf-8', replaced: 0 }
  const label = declared && knownCharset(declared)
  if (label && label !== 'utf-8') return decodeAs(bytes, label)
  if (isDamagedUtf8(bytes)) return decodeAs(bytes, 'utf-8')
  return decodeAs(bytes, arabicCharset(bytes.subarray(0, SAMPLE_BYTES)) ?? 'windows-1252')
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
 * In UTF-16 of Arabic or English every second byte is 0x06 or 0x00, which no 8-bit text holds. Small binary numbers
 * look alike, so most of the characters that come out must be letters, spaces or printable ASCII.
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

/**
 * High bytes of a charset that are Arabic letters, and among them the fourteen that make up four fifths of running
 * Arabic.
 */
interface ArabicBytes {
  readonly charset: string
  readonly letters: ReadonlySet<number>
  readonly common: ReadonlySet<number>
}

/** MacArabic has the letters of ISO-8859-6 where that has them. */
const ARABIC_CHARSETS: readonly ArabicBytes[] = ['windows-1256', 'iso-8859-6'].map((charset) => ({
  charset,
  letters: bytesOf(charset, /\p{Script=Arabic}/u),
  common: bytesOf(charset, /[اليمنورتةبهعدس]/u),
}))

function bytesOf(charset: string, pattern: RegExp): ReadonlySet<number> {
  const decoder = new TextDecoder(charset)
  return new Set(Array.from({ length: 128 }, (_, index) => index + 128).filter((byte) => pattern.test(decoder.decode(Uint8Array.of(byte)))))
}

/** The charset in which most letters are common ones; undefined when the bytes read as Arabic in none. */
function arabicCharset(sample: Uint8Array): string | undefined {
  const [best] = ARABIC_CHARSETS.map((bytes) => ({ charset: bytes.charset, fit: fitOf(sample, bytes) })).sort((a, b) => b.fit - a.fit)
  if (!best || best.fit === 0) return undefined
  return best.charset === 'iso-8859-6' && sample.some((byte) => MAC_ONLY.has(byte)) ? MAC_ARABIC : best.charset
}

/**
 * The share of common letters in the high bytes, or 0. Arabic words are runs of high bytes, mostly common letters;
 * accented letters of Latin words stand alone between ASCII ones.
 */
function fitOf(sample: Uint8Array, { letters, common }: ArabicBytes): number {
  let high = 0
  let found = 0
  let beside = 0
  let usual = 0
  for (let at = 0; at < sample.length; at += 1) {
    const byte = sample[at]!
    if (byte >= 0x80) high += 1
    if (!letters.has(byte)) continue
    found += 1
    if (letters.has(sample[at - 1] ?? 0) || letters.has(sample[at + 1] ?? 0)) beside += 1
    if (common.has(byte)) usual += 1
  }
  return found > 0 && beside >= found * 0.6 && usual >= found * 0.5 ? usual / high : 0
}

const MAC_ARABIC = 'x-mac-arabic'
/** Bytes that MacArabic has for digits and signs between Arabic letters, and ISO-8859-6 does not have. */
const MAC_ONLY: ReadonlySet<number> = new Set([0xa1, 0xa8, 0xa9, 0xae, 0xaf, ...Array.from({ length: 11 }, (_, index) => 0xb0 + index)])
/** Letters of MacArabic behind those of ISO-8859-6. */
const MAC_LETTERS: Readonly<Record<number, string>> = {
  243: 'پ',
  244: 'ٹ',
  245: 'چ',
  246: 'ە',
  247: 'ڤ',
  248: 'گ',
  249: 'ڈ',
  250: 'ڑ',
  254: 'ژ',
  255: 'ے',
}

/** Its table: letters as in ISO-8859-6, Arabic digits, and the signs of ASCII once more. */
function decodeMacArabic(bytes: Uint8Array): DecodedText {
  const iso = new TextDecoder('iso-8859-6')
  const table = Array.from({ length: 256 }, (_, byte) => {
    const inIso = iso.decode(Uint8Array.of(byte))
    if (byte < 0x80) return inIso
    if (byte >= 0xb0 && byte <= 0xb9) return String.fromCharCode(0x660 + byte - 0xb0)
    if (/\p{Script=Arabic}|[،؛؟]/u.test(inIso)) return inIso
    return MAC_LETTERS[byte] ?? (byte < 0xa0 ? '\ufffd' : String.fromCharCode(byte - 0x80))
  })
  const parts: string[] = []
  let replaced = 0
  for (const byte of bytes) {
    const char = table[byte]!
    if (char === '\ufffd') replaced += 1
    parts.push(char)
  }
  return { text: parts.join(''), charset: MAC_ARABIC, replaced }
}

function decodeAs(bytes: Uint8Array, charset: string): DecodedText {
  if (charset === MAC_ARABIC) return decodeMacArabic(bytes)
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

export function warnOfReplaced({ replaced, charset }: DecodedText, builder: DocumentBuilder): void {
  if (replaced > 0) builder.warn('replaced_characters', `${replaced} characters could not be read as ${charset}.`)
}
