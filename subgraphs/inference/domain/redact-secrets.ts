/** Shorter secrets are not searched for, because ordinary words contain such texts, too. */
export const MIN_SECRET_LENGTH = 8
/** Longest text that is searched, which takes milliseconds. Bodies of vendors' errors are cut at as many bytes. */
const MAX_LENGTH = 64 * 2 ** 10
/** Most nested encodings that are decoded, such as percent signs of a URL that are percent-encoded again. */
const MAX_ROUNDS = 3

/** White space and invisible characters. Lines of base64 are wrapped. */
const GAPS = /[\s\p{Cf}]+/gu
/** Percent-encoding, entities of HTML, and escapes of JSON and JavaScript. */
const ESCAPES = /(?:%|\\x)([\da-f]{2})|\\u([\da-f]{4})|&#x([\da-f]{1,6});?|&#(\d{1,7});?|&([a-z]{2,6});|\\([^\da-z])/gi
/** Entities of the characters, other than letters and digits, that keys contain. */
const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  colon: ':',
  equals: '=',
  gt: '>',
  lowbar: '_',
  lt: '<',
  num: '#',
  percnt: '%',
  period: '.',
  plus: '+',
  quot: '"',
  sol: '/',
}
/** Base64 of at least the shortest secret's length. */
const BASE64 = /[\w+/-]{11,}/g
const HEX = /[\da-f]{16,}/gi

/**
 * Returns a function that removes secrets from untrusted text, in upper or lower case, and also where they are encoded
 * for a URL, in base64 or in JSON. The function returns null if the text contains a secret in another form, or is too
 * long to be searched: then none of it may be shown. It runs in linear time.
 */
export function redactorOf(secrets: readonly string[]): (text: string) => string | null {
  const forms = secrets.filter(({ length }) => length >= MIN_SECRET_LENGTH).flatMap(formsOf)
  if (forms.length === 0) return (text) => text
  // Longest first, because one form may contain another.
  const alternatives = [...new Set(forms)].sort((a, b) => b.length - a.length).map((form) => RegExp.escape(form))
  const pattern = new RegExp(alternatives.join('|'), 'gi')
  // Decoding lengthens no text.
  const shortest = Math.min(...forms.map(({ length }) => length))
  return (text) => {
    if (text.length < shortest) return text
    if (text.length > MAX_LENGTH) return null
    const redacted = text.replaceAll(pattern, '…')
    // `search` starts at index 0, unlike `test`.
    for (const decoded of decodings(redacted)) if (decoded.search(pattern) !== -1) return null
    return redacted
  }
}

function formsOf(secret: string): readonly string[] {
  const base64 = Buffer.from(secret)
    .toString('base64')
    .replace(/={1,2}$/, '')
  return [
    secret,
    secret.replace(GAPS, ''),
    // `decodings` decodes bytes one by one, as Latin-1.
    Buffer.from(secret).toString('latin1'),
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    base64,
    base64.replaceAll('+', '-').replaceAll('/', '_'),
  ].filter(({ length }) => length >= MIN_SECRET_LENGTH)
}

/** Yields the texts that a reader gets by decoding `text`. */
function* decodings(text: string): Generator<string> {
  let decoded = text.replace(GAPS, '')
  for (let round = 0; ; round++) {
    yield decoded
    // Preceding characters may shift the groups of four.
    for (const [run] of decoded.matchAll(BASE64)) for (const at of [0, 1, 2, 3]) yield bytesOf(run.slice(at), 'base64')
    for (const [run] of decoded.matchAll(HEX)) for (const at of [0, 1]) yield bytesOf(run.slice(at), 'hex')
    const next = decoded.replace(ESCAPES, unescaped)
    if (round === MAX_ROUNDS || next === decoded) return
    decoded = next
  }
}

function bytesOf(text: string, encoding: 'base64' | 'hex'): string {
  return Buffer.from(text, encoding).toString('latin1')
}

function unescaped(all: string, byte?: string, unit?: string, hex?: string, decimal?: string, entity?: string, char?: string): string {
  const digits = byte ?? unit ?? hex
  if (digits === undefined && decimal === undefined) return char ?? ENTITIES[entity!.toLowerCase()] ?? all
  const code = digits === undefined ? Number(decimal) : Number.parseInt(digits, 16)
  return code <= 0x10ffff ? String.fromCodePoint(code) : all
}
