import { hkdfSync, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A key for one purpose, derived from the installation's secret (HKDF-SHA-256, RFC 5869). */
export function deriveKey(secret: Uint8Array, purpose: 'principal tokens' | 'api key pepper'): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, 'kis', purpose, 32))
}

/** `KIS_SECRET`'s bytes. @throws {Error} shorter than 32 characters: too easy to guess. */
export function parseSecret(text: string): Uint8Array {
  if (text.length < 32) throw new Error('KIS_SECRET must have at least 32 characters')
  return new TextEncoder().encode(text)
}

/** The secret of an embedded installation, made on its first start and kept in the data folder, readable by its owner only. */
export function keptSecret(dataDirectory: string): Uint8Array {
  const file = join(dataDirectory, 'secret')
  mkdirSync(dataDirectory, { recursive: true })
  try {
    writeFileSync(file, randomBytes(32).toString('hex'), { flag: 'wx', mode: 0o600, flush: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return parseSecret(readFileSync(file, 'utf8'))
}
