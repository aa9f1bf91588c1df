import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { Environment } from '../settings/environment.ts'

/** Characters. Whoever has the archive can try many passphrases; a shorter one is found within years. */
const MIN_PASSPHRASE = 12

/**
 * Reads the passphrase of an archive: never from an argument, which others on the machine see, and the shell keeps.
 * @throws {Error} it is missing or short
 */
export async function readPassphrase(env: Environment): Promise<string> {
  const passphrase = env.KIS_BACKUP_PASSPHRASE ?? (process.stdin.isTTY ? await prompt() : undefined)
  if (passphrase === undefined)
    throw new Error(
      'The secret needs a passphrase: set KIS_BACKUP_PASSPHRASE, or KIS_BACKUP_PASSPHRASE_FILE to the name of a file with it.',
    )
  if (passphrase.length < MIN_PASSPHRASE) throw new Error(`The passphrase must have at least ${MIN_PASSPHRASE} characters.`)
  return passphrase
}

/** Asks at the terminal, without showing what is typed. */
async function prompt(): Promise<string> {
  process.stderr.write('Passphrase of the secret: ')
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true })
  try {
    return await terminal.question('')
  } finally {
    terminal.close()
    process.stderr.write('\n')
  }
}
