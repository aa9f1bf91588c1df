import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '../errors.ts'
import { MIN_LENGTH, parseSecret } from './secrets.ts'

/** The files of a data folder with the secret, and with the next one during a rotation. */
export const secretFilesOf = (dataDirectory: string) => ({
  secret: join(dataDirectory, 'secret'),
  next: join(dataDirectory, 'secret.next'),
})

/** Creates a secret in the form in which it is stored. */
export const newSecretText = () => randomBytes(32).toString('hex')

/**
 * Returns the secret of an embedded installation. The first start creates one in the data folder, readable only by its
 * owner.
 * @throws {ConfigError} the secret cannot be written, or is missing although stores exist that were created with it; or
 * as `readStoredSecret`
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
    if (code !== 'EEXIST') throw unusable(dataDirectory, `cannot store the secret: ${message}`)
  }
  return readStoredSecret(dataDirectory)
}

/**
 * Returns the secret of an embedded installation that was started before.
 * @throws {ConfigError} the secret cannot be read, or is being rotated
 */
export function readStoredSecret(dataDirectory: string): Uint8Array {
  const { secret, next } = secretFilesOf(dataDirectory)
  if (existsSync(next)) throw new ConfigError([`${HALF_ROTATED} It removes ${next} at its end.`])
  const earlier = `${secret}.previous`
  if (existsSync(earlier) && Buffer.compare(readSecretFile(earlier, dataDirectory), readSecretFile(secret, dataDirectory)) !== 0)
    throw new ConfigError([`${HALF_ROTATED_EARLIER} It removes ${earlier} at its end.`])
  return readSecretFile(secret, dataDirectory)
}

/** What to do after an interruption of `kis secret rotate`. */
export const HALF_ROTATED = 'A rotation of the secret has not ended. Run `kis secret rotate` again: it continues.'
/** What to do when version 0.2 did not finish a rotation. */
export const HALF_ROTATED_EARLIER =
  'A rotation of the secret that version 0.2 has begun has not ended. Start that version again, wait until its `kis secret` says that nothing is left, and upgrade then.'

/**
 * Returns the secret in a file.
 * @throws {ConfigError} the secret cannot be read, or is too short
 */
export function readSecretFile(file: string, dataDirectory: string): Uint8Array {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw unusable(dataDirectory, `has a secret that cannot be read: ${(error as Error).message}`)
  }
  if (text.length >= MIN_LENGTH) return parseSecret(text)
  throw unusable(dataDirectory, `has a truncated secret: restore ${file} from a backup, because no key works with another`)
}

const unusable = (dataDirectory: string, why: string) =>
  new ConfigError([`KIS_DATA_DIR (${dataDirectory}) ${why}. To store the secret elsewhere, set KIS_SECRET.`])

const lostSecret = (file: string) =>
  new ConfigError([
    `${file} is missing, though the data folder has stores that were created with it: with another one, no API key works. ` +
      'Restore the file from a backup, or set KIS_SECRET to the secret that the stores were created with.',
  ])
