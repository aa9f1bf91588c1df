import { hkdfSync } from 'node:crypto'
import { ConfigError } from '../errors.ts'
import { SealedTexts } from './sealed-text.ts'

export const MIN_LENGTH = 32

/** The purposes of derived keys. */
export type Purpose =
  | 'principal tokens'
  // Version 0.2 derived the key pepper with this purpose.
  | 'api key pepper'
  | 'sealed pepper'
  | 'secrets of callers'
  | 'webhook secrets'
  | 'sign-ins'
  | 'stored bytes'
  | 'fingerprint'

/** Derives a key for one purpose from the installation's secret (HKDF-SHA-256, RFC 5869). */
export function deriveKey(secret: Uint8Array, purpose: Purpose): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, 'kis', purpose, 32))
}

/** Returns the sealed texts of one purpose under the installation's secret. */
export function sealedBy(secret: Uint8Array, purpose: Purpose): SealedTexts {
  return new SealedTexts(deriveKey(secret, purpose))
}

/** Identifies the secret without revealing it. */
export function fingerprintSecret(secret: Uint8Array): string {
  return Buffer.from(deriveKey(secret, 'fingerprint')).toString('hex').slice(0, 16)
}

/**
 * Returns the bytes of a secret. `name` is the variable that contains it.
 * @throws {ConfigError} the secret is shorter than 32 characters, and so too easy to guess
 */
export function parseSecret(text: string, name = 'KIS_SECRET'): Uint8Array {
  if (text.length < MIN_LENGTH) throw new ConfigError([`${name} must have at least ${MIN_LENGTH} characters`])
  return new TextEncoder().encode(text)
}
