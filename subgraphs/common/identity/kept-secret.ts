import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../process/config-error.ts'
import { acceptedSecrets, type Secrets } from './accepted-secrets.ts'
import { MIN_LENGTH, parseSecret } from './secrets.ts'

/** The files of a data folder with the secret, and while it is rotated with the one before. */
export const keptFiles = (dataDirectory: string) => ({
  secret: join(dataDirectory, 'secret'),
  previous: join(dataDirectory, 'secret.previous'),
})

/** A new secret, as it is kept. */
export const newSecretText = () => randomBytes(32).toString('hex')

/**
 * Gives the secrets of an embedded installation. The first start creates one in the data folder, readable only by its
 * owner.
 * @throws {ConfigError} it cannot be written or read, or is missing although stores exist that were made with it
 */
export function keptSecrets(dataDirectory: string): Secrets {
  const { secret: file, previous } = keptFiles(dataDirectory)
  try {
    mkdirSync(dataDirectory, { recursive: true, mode: 0o700 })
    if (!existsSync(file) && readdirSync(dataDirectory).some((name) => name.endsWith('.sqlite'))) throw lostSecret(file)
    if (!existsSync(file)) writeFileSync(file, newSecretText(), { flag: 'wx', mode: 0o600, flush: true })
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    // On a full disk the file may exist without its text.
    if (code === 'ENOSPC') rmSync(file, { force: true })
    if (code !== 'EEXIST') throw unusable(dataDirectory, `cannot keep the secret: ${message}`)
  }
  return acceptedSecrets(readSecret(file, dataDirectory), {
    next: null,
    previous: existsSync(previous) ? readSecret(previous, dataDirectory) : null,
  })
}

/** Removes the file with this previous secret, once nothing depends on it. Idempotent. */
export function forgetPrevious(dataDirectory: string, previous: Uint8Array): void {
  const { previous: file } = keptFiles(dataDirectory)
  if (existsSync(file) && readFileSync(file).equals(previous)) rmSync(file)
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
