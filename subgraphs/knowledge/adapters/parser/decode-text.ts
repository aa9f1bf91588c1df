import type { DocumentBuilder } from './readers/document-builder.ts'

interface DecodedText {
  readonly text: string
  /** A label of the Encoding standard, such as `windows-1256`; or `x-mac-arabic`, which the standard does not have. */
  readonly charset: string
  /** The number of bytes that the charset has no character for. They became U+FFFD. */
  readonly replaced: number
}

/**
 * The number of bytes that choose the charset. The beginning of a text shows its charset, so the rest is only decoded.
 */
const SAMPLE_BYTES = 256 * 1024

/** The share of a UTF-16 sample's characters that must be ASCII or Arabic. */
const LEAST_UTF16_SHARE = 0.7

/**
 * The largest share of broken sequences, relative to whole multi-byte sequences, at which a text is damaged UTF-8. A
 * text with more has another charset.
 */
const MAX_BROKEN_UTF8_SHARE = 0.05

/**
 * Decodes text of unknown charset. It tries, in this order: a byte order mark; UTF-16 by its pattern of high bytes;
 * valid UTF-8; `declared`, which is an HTML page's own label; UTF-8 with a few broken bytes; and the 8-bit code pages.
 * Text whose letters read as Arabic is windows-1256, ISO-8859-6 or MacArabic. Any other text is windows-1252.
 */
export function decodeText(bytes: Uint8Array, declared?: string): DecodedText {
  const marked = charsetOfMark(bytes) ?? utf16WithoutMark(bytes)
  if (marked) return decodeAs(bytes, marked)
  const strict = decodeStrictly(bytes, 'utf-8')
  if (strict !== undefined) return { text: strict, charset: 'utf-8', replaced: 0 }
  const label = declared && knownCharset(declared)
  if (label && label !== 'utf-8') return decodeAs(bytes, label)
  if (isCorruptedUtf8(bytes)) return decodeAs(bytes, 'utf-8')
  return decodeAs(bytes, arabicCharset(bytes.subarray(0, SAMPLE_BYTES)) ?? 'windows-1252')
}

/** Reports whether the bytes look like no text in any charset. The beginning of the file is enough. */
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
 * Recognizes UTF-16 without a byte order mark. In Arabic or English UTF-16, every second byte is 0x06 or 0x00, which
 * 8-bit text does not contain. Small binary numbers look the same, so most of the decoded characters must be Arabic,
 * spaces or printable ASCII.
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

function isCorruptedUtf8(bytes: Uint8Array): boolean {
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
 * The high bytes of a charset that are Arabic letters. `common` holds fourteen letters, which make up four fifths of
 * running Arabic text.
 */
interface ArabicBytes {
  readonly charset: string
  readonly letters: ReadonlySet<number>
  readonly common: ReadonlySet<number>
}

/** MacArabic encodes the letters that ISO-8859-6 has with the same bytes. */
const ARABIC_CHARSETS: readonly ArabicBytes[] = ['windows-1256', 'iso-8859-6'].map((charset) => ({
  charset,
  letters: findBytes(charset, /\p{Script=Arabic}/u),
  common: findBytes(charset, /[اليمنورتةبهعدس]/u),
}))

function findBytes(charset: string, pattern: RegExp): ReadonlySet<number> {
  const decoder = new TextDecoder(charset)
  return new Set(Array.from({ length: 128 }, (_, index) => index + 128).filter((byte) => pattern.test(decoder.decode(Uint8Array.of(byte)))))
}

/** Returns the charset in which most letters are common ones, or undefined if the bytes read as Arabic in none. */
function arabicCharset(sample: Uint8Array): string | undefined {
  const [best] = ARABIC_CHARSETS.map((bytes) => ({ charset: bytes.charset, fit: measureFit(sample, bytes) })).sort((a, b) => b.fit - a.fit)
  if (!best || best.fit === 0) return undefined
  return best.charset === 'iso-8859-6' && sample.some((byte) => MAC_ONLY.has(byte)) ? MAC_ARABIC : best.charset
}

/**
 * Returns the share of common letters in the high bytes, or 0 if they do not read as Arabic. Arabic words are runs of
 * high bytes, most of them common letters. Accented letters of Latin words stand alone between ASCII letters.
 */
function measureFit(sample: Uint8Array, { letters, common }: ArabicBytes): number {
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
/** Bytes that are digits and signs in MacArabic, and undefined in ISO-8859-6. */
const MAC_ONLY: ReadonlySet<number> = new Set([0xa1, 0xa8, 0xa9, 0xae, 0xaf, ...Array.from({ length: 11 }, (_, index) => 0xb0 + index)])
/** MacArabic letters that ISO-8859-6 does not have. */
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

/** Decodes MacArabic: the letters of ISO-8859-6, Arabic digits, and a second copy of the ASCII signs. */
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

/** Warns `replaced_characters` if some bytes became U+FFFD. */
export function warnOfReplaced({ replaced, charset }: DecodedText, builder: DocumentBuilder): void {
  if (replaced > 0) builder.warn('replaced_characters', `${replaced} characters could not be read as ${charset}. Upload the file in UTF-8.`)
}
