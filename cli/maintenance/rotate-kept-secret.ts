import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { FileLock } from '../../subgraphs/common/adapters/sqlite/database.ts'
import { keptFiles, newSecretText } from '../../subgraphs/common/identity/kept-secret.ts'
import { syncFolder } from '../archive/archive-writer.ts'

/**
 * Gives a data folder a new secret, and keeps the one before beside it. A kill at any moment leaves a folder with which
 * the service starts; repeating it goes on. Gives the paths of both.
 * @throws {Error} there is no secret, a rotation is under way, or the storage fails
 */
export function rotateKeptSecret({ dataDirectory }: { readonly dataDirectory: string }): ReturnType<typeof keptFiles> {
  const files = keptFiles(dataDirectory)
  const { secret, previous } = files
  if (!existsSync(secret)) throw new Error(`${secret} is not there. KIS_DATA_DIR names the data folder; the first start makes its secret.`)
  using _lock = new FileLock(secret)
  const text = readFileSync(secret)
  if (existsSync(previous) && !readFileSync(previous).equals(text))
    throw new Error('A rotation is under way: `kis secret` says what is left of it. Restart the service if you have not yet.')
  // As long as both files have the same text, nothing is rotated.
  replaceFile(previous, text, dataDirectory)
  replaceFile(secret, newSecretText(), dataDirectory)
  return files
}

/** All of the text or none of it, also after a loss of power. */
function replaceFile(file: string, text: string | Uint8Array, folder: string): void {
  const beside = `${file}.new`
  const descriptor = openSync(beside, 'w', 0o600)
  try {
    writeFileSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  renameSync(beside, file)
  syncFolder(folder)
}
