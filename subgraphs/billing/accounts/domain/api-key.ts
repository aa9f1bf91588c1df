import { createHmac } from 'node:crypto'
import { crc32 } from 'node:zlib'

const PREFIX = 'kis_live_'
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 30 characters of base62 encode 178 bits. */
const BODY_LENGTH = 30
/** 6 characters of base62 encode a CRC-32, which detects a mistyped or invented key without a read of the store. */
const CHECKSUM_LENGTH = 6
const FORM = new RegExp(`^${PREFIX}([0-9A-Za-z]{${BODY_LENGTH}})([0-9A-Za-z]{${CHECKSUM_LENGTH}})$`)

/** Limit of unrevoked keys of one organization. The wallet, which every call writes, has a counter for each. */
export const MAX_API_KEYS = 1_000

/** Creates a key from 32 random bytes: `kis_live_<30 base62><6 base62 CRC-32 of those 30>`. */
export function apiKeyFrom(bytes: Uint8Array): string {
  if (bytes.length !== 32) throw new RangeError('a key is made of 32 bytes')
  const body = base62(BigInt(`0x${Buffer.from(bytes).toString('hex')}`), BODY_LENGTH)
  return PREFIX + body + computeChecksum(body)
}

/** Returns whether the text has the form of a key, with the right checksum. The key need not exist. */
export function isApiKey(text: string): boolean {
  const match = FORM.exec(text)
  return match !== null && computeChecksum(match[1]!) === match[2]
}

/**
 * Returns the digest that is stored instead of the key. The pepper is not stored in plain text, so keys cannot be tried
 * on a copy of the store.
 */
export function digestKey(apiKey: string, pepper: Uint8Array): string {
  return createHmac('sha256', pepper).update(apiKey).digest('hex')
}

function computeChecksum(body: string): string {
  return base62(BigInt(crc32(body)), CHECKSUM_LENGTH)
}

/**
 * Returns the last `length` digits of the number in base 62. 256 random bits are so many more than 178 that the digits
 * are uniform.
 */
function base62(value: bigint, length: number): string {
  let digits = ''
  for (let rest = value; digits.length < length; rest /= 62n) digits = ALPHABET[Number(rest % 62n)]! + digits
  return digits
}
