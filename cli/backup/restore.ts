import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { FileLock, NewerFile } from '../../subgraphs/common/adapters/sqlite/database.ts'
import { fingerprintSecret } from '../../subgraphs/common/identity/installation.ts'
import { VERSIONS } from '../../subgraphs/common/process/versions.ts'
import { ArchiveChain } from './archive.ts'
import { dataFiles } from './data-files.ts'
import { type Manifest, PIECE_BYTES } from './manifest.ts'
import { restoringFolder, unfinishedMark } from './restoring.ts'
import { open } from './sealed-secret.ts'
import { syncFolder } from './tar-writer.ts'

/** What a file system may have in its root. */
const NOBODYS = ['lost+found']
/** The file of a data folder with the secret, if `KIS_SECRET` does not give it. */
const SECRET = 'secret'

export interface RestoreOptions {
  readonly dataDirectory: string
  /** The archive. */
  readonly file: string
  /** The earlier archives that it needs, newest first, if they are not beside it under their own names. */
  readonly since: readonly string[]
  /** Reads and checks everything, and writes nothing. */
  readonly check: boolean
  /** Gives the passphrase. Called if the archive has a secret. */
  passphrase(): Promise<string>
}

/**
 * Puts the files of a backup into an empty data folder: all or none. If it is interrupted, the service does not start
 * on that folder, and a restore begins anew.
 * @throws {Error} the archive is damaged, not complete, or newer; the folder is not empty; the passphrase is wrong
 */
export async function restore({ dataDirectory, file, since, check, passphrase }: RestoreOptions): Promise<Manifest> {
  using chain = new ArchiveChain(file, since, VERSIONS.version)
  const { manifest } = chain
  refuseNewer(manifest, dataDirectory)
  const secret = manifest.secret && openSecret(file, manifest, await passphrase())
  if (check) {
    for (const each of manifest.files) for (const _piece of readPieces(each, chain));
    return manifest
  }
  refuseUsed(dataDirectory)
  mkdirSync(dataDirectory, { recursive: true, mode: 0o700 })
  refuseNoRoom(manifest, dataDirectory)
  const folder = restoringFolder(dataDirectory)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const { error } = underLock(folder, () => {
    const staged = attempt(() => {
      clear(dataDirectory)
      for (const file of manifest.files) writeAll(join(folder, file.name), readPieces(file, chain))
      if (secret) writeAll(join(folder, SECRET), [secret])
      syncFolder(folder)
      // A service that began to start before the folder was marked.
      refusePlaced(dataDirectory)
    })
    if (!staged.error) place([...manifest.files.map(({ name }) => name), ...(secret ? [SECRET] : [])], dataDirectory)
    return staged
  })
  rmSync(folder, { recursive: true })
  if (error) throw error
  return manifest
}

function underLock<T>(folder: string, work: () => T): T {
  using _lock = new FileLock(join(folder, 'restore'))
  return work()
}

function attempt(work: () => void): { readonly error?: unknown } {
  try {
    work()
    return {}
  } catch (error) {
    return { error }
  }
}

/** Marks the folder, and removes what an interrupted restore has left. The service has not started there since. */
function clear(dataDirectory: string): void {
  const mark = unfinishedMark(dataDirectory)
  // Another restore may have ended since the folder was found empty.
  if (!existsSync(mark)) refusePlaced(dataDirectory)
  writeFileSync(mark, '', { mode: 0o600 })
  const folder = restoringFolder(dataDirectory)
  for (const each of [folder, dataDirectory]) syncFolder(each)
  for (const name of placedNames(dataDirectory)) for (const each of [folder, dataDirectory]) rmSync(join(each, name), { force: true })
}

/** From the first name on, only a restore can go on with the folder, until the mark is gone. */
function place(names: readonly string[], dataDirectory: string): void {
  const folder = restoringFolder(dataDirectory)
  for (const name of names) renameSync(join(folder, name), join(dataDirectory, name))
  syncFolder(dataDirectory)
  rmSync(unfinishedMark(dataDirectory))
  syncFolder(folder)
}

function placedNames(dataDirectory: string): readonly string[] {
  return [...Object.values(dataFiles(dataDirectory)).map(({ path }) => basename(path)), SECRET]
}

function refuseNewer({ files }: Manifest, dataDirectory: string): void {
  for (const { path, schemaVersion } of Object.values(dataFiles(dataDirectory))) {
    const theirs = files.find(({ name }) => name === basename(path))
    if (theirs && theirs.schemaVersion > schemaVersion) throw new NewerFile(theirs.name, theirs.schemaVersion, schemaVersion)
  }
}

function openSecret(file: string, { secret, installation }: Manifest, passphrase: string): Uint8Array {
  const opened = open(secret!, passphrase, installation?.id ?? '')
  if (!opened) throw new Error(`The passphrase is not the one that the secret in ${file} was sealed with.`)
  if (installation && fingerprintSecret(opened) !== installation.secretFingerprint)
    throw new Error(`${file} has the secret of another installation.`)
  return opened
}

/** @throws {Error} the folder has something that no interrupted restore has left */
function refuseUsed(dataDirectory: string): void {
  const isRepeated = existsSync(unfinishedMark(dataDirectory))
  const ours = [basename(restoringFolder(dataDirectory)), ...(isRepeated ? placedNames(dataDirectory) : [])]
  const names = existsSync(dataDirectory) ? readdirSync(dataDirectory) : []
  refuseName(
    names.find((name) => !NOBODYS.includes(name) && !ours.includes(name)),
    dataDirectory,
  )
}

function refusePlaced(dataDirectory: string): void {
  refuseName(
    placedNames(dataDirectory).find((name) => existsSync(join(dataDirectory, name))),
    dataDirectory,
  )
}

function refuseName(name: string | undefined, dataDirectory: string): void {
  if (name !== undefined)
    throw new Error(
      `${dataDirectory} is not empty: it has ${name}. A restore needs an empty data folder. Move what is there away, or set KIS_DATA_DIR to another folder.`,
    )
}

function refuseNoRoom({ files }: Manifest, dataDirectory: string): void {
  const needed = files.reduce((sum, { bytes }) => sum + bytes, 0)
  const { bavail, bsize } = statfsSync(dataDirectory)
  const room = bavail * bsize
  if (needed > room) throw new Error(`The disk of ${dataDirectory} has room for ${room} bytes, and the backup needs ${needed}.`)
}

/** @throws {Error} a piece is damaged, or of another size than the file needs */
function* readPieces({ name, bytes, pieces }: Manifest['files'][number], chain: ArchiveChain): Generator<Uint8Array> {
  for (const [place, digest] of pieces.entries()) {
    const piece = chain.read(digest)
    if (piece.length !== Math.min(PIECE_BYTES, bytes - place * PIECE_BYTES))
      throw new Error(`The backup is damaged: a piece of ${name} has another size than its place.`)
    yield piece
  }
}

/** Writes a new file, which is then on the disk. */
function writeAll(path: string, parts: Iterable<Uint8Array>): void {
  const descriptor = openSync(path, 'wx', 0o600)
  try {
    for (const part of parts) writeFileSync(descriptor, part)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
