import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../errors.ts'
import { MIN_LENGTH, parseSecret } from './secrets.ts'

/** The files of a data folder with the secret, and the next one while it is rotated. */
export const secretFilesOf = (dataDirectory: string) => ({
  secret: join(dataDirectory, 'secret'),
  next: join(dataDirectory, 'secret.next'),
})

/** A new secret, as it is kept. */
export const newSecretText = () => randomBytes(32).toString('hex')

/**
 * Gives the secret of an embedded installation. The first start creates one in the data folder, readable only by its
 * owner.
 * @throws {ConfigError} it cannot be written, or is missing although stores exist that were made with it; or as
 * `readKeptSecret`
 */
export function loadOrCreateSecret(dataDirectory: string): Uint8Array {
  const { secret: file } = secretFilesOf(dataDirectory)
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
  return readStoredSecret(dataDirectory)
}

/**
 * Gives the secret of an embedded installation that was started before.
 * @throws {ConfigError} it cannot be read, or is being rotated
 */
export function readStoredSecret(dataDirectory: string): Uint8Array {
  const { secret, next } = secretFilesOf(dataDirectory)
  if (existsSync(next)) throw new ConfigError([`${HALF_ROTATED} It removes ${next} at its end.`])
  const earlier = `${secret}.previous`
  if (existsSync(earlier) && Buffer.compare(readSecretFile(earlier, dataDirectory), readSecretFile(secret, dataDirectory)) !== 0)
    throw new ConfigError([`${HALF_ROTATED_EARLIER} It removes ${earlier} at its end.`])
  return readSecretFile(secret, dataDirectory)
}

/** What to do when `kis secret rotate` was interrupted. */
export const HALF_ROTATED = 'A rotation of the secret has not ended. Run `kis secret rotate` again: it continues.'
/** What to do when a rotation of version 0.2 was not finished. */
export const HALF_ROTATED_EARLIER =
  'A rotation of the secret that version 0.2 has begun has not ended. Start that version again, wait until its `kis secret` says that nothing is left, and upgrade then.'

/** Gives the secret in a file. @throws {ConfigError} it cannot be read, or is too short */
export function readSecretFile(file: string, dataDirectory: string): Uint8Array {
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
