import { closeSync, existsSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { backup, type DatabaseSync } from 'node:sqlite'
import { damageSeenAtStart } from '../../subgraphs/common/adapters/sqlite/damage-at-start.ts'
import type { FolderFile } from '../../subgraphs/common/adapters/sqlite/data-folder.ts'
import { damaged, NewerFile, toOpeningFailure, toStorageFailure } from '../../subgraphs/common/adapters/sqlite/database.ts'
import { markOfFile } from '../../subgraphs/common/adapters/sqlite/store-mark.ts'
import { explainForeign, fingerprintSecret, type Installation } from '../../subgraphs/common/identity/installation.ts'
import { keptFiles } from '../../subgraphs/common/identity/kept-secret.ts'
import { parseSecret } from '../../subgraphs/common/identity/secrets.ts'
import { systemClock } from '../../subgraphs/common/process/clock.ts'
import { idSource } from '../../subgraphs/common/process/ids.ts'
import { VERSIONS } from '../../subgraphs/common/process/versions.ts'
import { Archive } from './archive.ts'
import { ArchiveWriter } from './archive-writer.ts'
import { dataFiles } from './data-files.ts'
import { FORMAT, type Manifest, PIECE_BYTES, sha256 } from './manifest.ts'
import { type Sealed, seal } from './sealed-secret.ts'
import { Snapshot } from './snapshot.ts'

/** Pages that are copied before the process looks at anything else: 16 MiB at the most. */
const COPIED_AT_ONCE = 512

export interface BackupOptions {
  readonly dataDirectory: string
  /** The archive to make. */
  readonly file: string
  /** An earlier archive, whose pieces are left out; undefined: the archive has everything. */
  readonly since: string | undefined
  /**
   * Puts the secret into the archive, under a passphrase. `secret` is `KIS_SECRET`, if that is where it comes from; then
   * `isRotating` says whether a previous one is set, too.
   */
  readonly withSecret: { readonly passphrase: string; readonly secret: string | undefined; readonly isRotating?: boolean } | null
}

export interface BackupResult {
  readonly manifest: Manifest
  /** Of the archive. */
  readonly bytes: number
  /** Derived files that were left out because they are gone or damaged. */
  readonly leftOut: readonly string[]
}

/**
 * Copies the files of a data folder into an archive, all as they are at one moment. A service may run on the folder,
 * and goes on.
 * @throws {Error} a file is missing, damaged or of another installation; the storage fails; the arguments do not fit
 */
export async function backUp({ dataDirectory, file, since, withSecret }: BackupOptions): Promise<BackupResult> {
  const { files, installation, leftOut } = lookAt(dataDirectory)
  const sealed = withSecret && sealSecret(dataDirectory, installation, withSecret)
  const earlier = readEarlier(since, installation)
  using archive = new ArchiveWriter(file)
  using snapshot = await Snapshot.take(files.map(({ path }) => path))
  const copied: Manifest['files'] = []
  for (const each of files) {
    const connection = snapshot.get(each.path)
    const damage = damageIn(connection, each.path)
    if (damage === null) copied.push(await copyFile(each, connection, archive, earlier.pieces))
    else if (each.isDerived) leftOut.push(basename(each.path))
    else throw damaged(each.path, damage)
  }
  const manifest: Manifest = {
    format: FORMAT,
    id: idSource(systemClock)('bak'),
    madeAt: snapshot.madeAt.toISOString(),
    ...VERSIONS,
    installation,
    since: earlier.reference,
    files: copied,
    secret: sealed,
  }
  archive.finish(manifest)
  return { manifest, bytes: archive.bytes, leftOut }
}

/**
 * Finds the files, which must belong together.
 * @throws {Error} one is missing, of another installation, or newer
 */
export function lookAt(dataDirectory: string): { files: readonly FolderFile[]; installation: Installation | null; leftOut: string[] } {
  const known = Object.values(dataFiles(dataDirectory))
  const there = known.filter(({ path }) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0)
  const files: FolderFile[] = []
  const expected = new Set<string>()
  let installation: Installation | null = null
  for (const file of there) {
    const found = readMark(file)
    if (!found) continue
    files.push(file)
    if (found.version > file.schemaVersion) throw new NewerFile(file.path, found.version, file.schemaVersion)
    if (!found.mark || file.isDerived) continue
    const { id, secretFingerprint, siblings } = found.mark
    installation ??= { id, secretFingerprint }
    // While the secret is rotated, the marks of the files move one after the other.
    const problem = explainForeign(file.path, found.mark, { ...installation, secretFingerprint: found.mark.secretFingerprint })
    if (problem) throw new Error(problem)
    for (const sibling of siblings) expected.add(sibling)
  }
  if (!files.some(({ isDerived }) => !isDerived))
    throw new Error(`${dataDirectory} has no data of the service. KIS_DATA_DIR names the data folder.`)
  const lacking = known.filter((file) => !files.includes(file) && (there.includes(file) || expected.has(basename(file.path))))
  const lost = lacking.find(({ isDerived }) => !isDerived)
  if (lost) throw new Error(`${lost.path} is missing, so there is nothing whole to back up.`)
  return { files, installation, leftOut: lacking.map(({ path }) => basename(path)) }
}

/** Null: a derived file cannot be read. */
function readMark({ path, isDerived }: FolderFile): ReturnType<typeof markOfFile> | null {
  try {
    return markOfFile(path)
  } catch (error) {
    if (isDerived) return null
    throw toOpeningFailure(path, error)
  }
}

/** What SQLite finds wrong with a file, without reading all of a large one; null: nothing. */
function damageIn(connection: DatabaseSync, path: string): string | null {
  try {
    return damageSeenAtStart(connection, path)
  } catch (error) {
    if (toStorageFailure(error)?.data.kind === 'damaged') return (error as Error).message
    throw error
  }
}

function readEarlier(since: string | undefined, installation: Installation | null) {
  if (since === undefined) return { pieces: new Set<string>(), reference: null }
  using earlier = new Archive(since, VERSIONS.version)
  const { id, files, installation: theirs } = earlier.manifest
  if (theirs?.id !== installation?.id) throw new Error(`${since} is a backup of another installation.`)
  return { pieces: new Set(files.flatMap(({ pieces }) => pieces)), reference: { id, name: basename(since) } }
}

/** SQLite copies the file, as its connection sees it, to a file beside the archive, because only it can read its log. */
async function copyFile(
  { path }: FolderFile,
  connection: DatabaseSync,
  archive: ArchiveWriter,
  earlier: ReadonlySet<string>,
): Promise<Manifest['files'][number]> {
  const copy = archive.besideName
  using closing = new DisposableStack()
  closing.defer(() => rmSync(copy, { force: true }))
  const { user_version: schemaVersion } = connection.prepare('PRAGMA user_version').get() as { user_version: number }
  await backup(connection, copy, { rate: COPIED_AT_ONCE })
  const descriptor = openSync(copy, 'r')
  closing.defer(() => closeSync(descriptor))
  const { size: bytes } = statSync(copy)
  const buffer = Buffer.alloc(PIECE_BYTES)
  const pieces: string[] = []
  for (let offset = 0; offset < bytes; offset += PIECE_BYTES) {
    const piece = buffer.subarray(0, readSync(descriptor, buffer, 0, PIECE_BYTES, offset))
    const digest = sha256(piece)
    pieces.push(digest)
    if (!earlier.has(digest)) archive.addPiece(digest, piece)
  }
  return { name: basename(path) as Manifest['files'][number]['name'], bytes, schemaVersion, pieces }
}

const rotating = () =>
  new Error(
    'The secret is being rotated, and the data depends on two secrets. Back up without --with-secret and keep both, or wait until `kis secret` says that nothing is left.',
  )

function sealSecret(
  dataDirectory: string,
  installation: Installation | null,
  { passphrase, secret, isRotating = false }: NonNullable<BackupOptions['withSecret']>,
): Sealed {
  const kept = join(dataDirectory, 'secret')
  if (secret === undefined && !existsSync(kept)) throw new Error(`${kept} is missing. Set KIS_SECRET to the secret of the service.`)
  if (isRotating || (secret === undefined && existsSync(keptFiles(dataDirectory).previous))) throw rotating()
  const bytes = parseSecret(secret ?? readFileSync(kept, 'utf8'))
  if (installation && fingerprintSecret(bytes) !== installation.secretFingerprint)
    throw new Error('The secret is another one than that of the data. Set KIS_SECRET to the secret of the service.')
  return seal(bytes, passphrase, installation?.id ?? '')
}
