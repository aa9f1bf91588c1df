import { hkdfSync, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A key for one purpose, derived from the installation's secret (HKDF-SHA-256, RFC 5869). */
export function deriveKey(
  secret: Uint8Array,
  purpose: 'principal tokens' | 'api key pepper' | 'secrets of callers' | 'fingerprint',
): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, 'kis', purpose, 32))
}

/** `KIS_SECRET`'s bytes. @throws {Error} shorter than 32 characters: too easy to guess. */
export function parseSecret(text: string): Uint8Array {
  if (text.length < 32) throw new Error('KIS_SECRET must have at least 32 characters')
  return new TextEncoder().encode(text)
}

class LostSecret extends Error {
  constructor(file: string) {
    super(
      `${file} is missing, though the data folder has stores that were made with it: with another one no API key works. ` +
        'Put the file back from a backup, or set KIS_SECRET to the secret that the stores were made with.',
    )
  }
}

/**
 * The secret of an embedded installation, made on its first start and kept in the data folder, readable by its owner only.
 * @throws {Error} it cannot be kept, or is gone though there are stores that were made with it.
 */
export function keptSecret(dataDirectory: string): Uint8Array {
  const file = join(dataDirectory, 'secret')
  try {
    mkdirSync(dataDirectory, { recursive: true })
    if (!existsSync(file) && readdirSync(dataDirectory).some((name) => name.endsWith('.sqlite'))) throw new LostSecret(file)
    if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString('hex'), { flag: 'wx', mode: 0o600, flush: true })
  } catch (error) {
    if (error instanceof LostSecret) throw error
    const { code, message } = error as NodeJS.ErrnoException
    // A full disk may have taken the file and not its text.
    if (code === 'ENOSPC') rmSync(file, { force: true })
    if (code !== 'EEXIST') throw new Error(`The secret cannot be kept in the data folder: ${message}. KIS_SECRET takes one from elsewhere.`)
  }
  return parseSecret(readFileSync(file, 'utf8'))
}
