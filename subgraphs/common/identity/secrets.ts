import { hkdfSync, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../process/config-error.ts'

const MIN_LENGTH = 32

/** Derives a key for one purpose from the installation's secret (HKDF-SHA-256, RFC 5869). */
export function deriveKey(
  secret: Uint8Array,
  purpose: 'principal tokens' | 'api key pepper' | 'secrets of callers' | 'sign-ins' | 'fingerprint',
): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, 'kis', purpose, 32))
}

/**
 * Gives the bytes of `KIS_SECRET`.
 * @throws {ConfigError} it is shorter than 32 characters, and so too easy to guess
 */
export function parseSecret(text: string): Uint8Array {
  if (text.length < MIN_LENGTH) throw new ConfigError([`KIS_SECRET must have at least ${MIN_LENGTH} characters`])
  return new TextEncoder().encode(text)
}

/**
 * Gives the secret of an embedded installation. The first start creates it in the data folder, readable only by its
 * owner.
 * @throws {ConfigError} it cannot be written or read, or is missing although stores exist that were made with it
 */
export function keptSecret(dataDirectory: string): Uint8Array {
  const file = join(dataDirectory, 'secret')
  try {
    mkdirSync(dataDirectory, { recursive: true, mode: 0o700 })
    if (!existsSync(file) && readdirSync(dataDirectory).some((name) => name.endsWith('.sqlite'))) throw lostSecret(file)
    if (!existsSync(file)) writeFileSync(file, randomBytes(32).toString('hex'), { flag: 'wx', mode: 0o600, flush: true })
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    // On a full disk the file may exist without its text.
    if (code === 'ENOSPC') rmSync(file, { force: true })
    if (code !== 'EEXIST') throw unusable(dataDirectory, `cannot keep the secret: ${message}`)
  }
  return readSecret(file, dataDirectory)
}

function readSecret(file: string, dataDirectory: string): Uint8Array {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw unusable(dataDirectory, `has a secret that cannot be read: ${(error as Error).message}`)
  }
  if (text.length >= MIN_LENGTH) return parseSecret(text)
  throw unusable(dataDirectory, `has a secret that is cut short: put ${file} back from a backup, because no key works with another`)
}

const unusable = (dataDirectory: string, why: string) =>
  new ConfigError([`KIS_DATA_DIR (${dataDirectory}) ${why}. KIS_SECRET takes the secret from elsewhere.`])

const lostSecret = (file: string) =>
  new ConfigError([
    `${file} is missing, though the data folder has stores that were made with it: with another one no API key works. ` +
      'Put the file back from a backup, or set KIS_SECRET to the secret that the stores were made with.',
  ])
