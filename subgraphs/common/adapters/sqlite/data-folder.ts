import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { explainMismatch, type Installation } from '../../identity/installation.ts'
import { Corrupted, Unfit } from '../../process/opening.ts'
import { FileLock, NewerFile, refuseMissingLog, toOpeningFailure, toStorageFailure } from './database.ts'
import { markOfFile, noteSiblings, type StoreMark } from './store-mark.ts'

interface DataFolderOptions {
  /** The files that this process opens. */
  readonly files: readonly FolderFile[]
  /**
   * Requests the installation from billing, when billing is another process or stores its data elsewhere. Null: the
   * files name the installation.
   */
  readInstallationId(): Promise<string> | null
  /** Creates the id of a new installation, at its first start. */
  newId(): string
}

/** A file of an installation. */
export interface FolderFile {
  readonly path: string
  /** The newest schema version that this program knows. */
  readonly schemaVersion: number
  /** True: the file can be rebuilt from the others, so its loss does no harm. */
  readonly isDerived: boolean
}

/**
 * Checks the files of an installation in one folder before any is opened: which installation they belong to, and
 * whether one is missing.
 */
export class DataFolder {
  readonly #options: DataFolderOptions
  #looked: Promise<FolderFacts> | undefined

  constructor(options: DataFolderOptions) {
    this.#options = options
  }

  /**
   * @throws {Error} a file is missing, corrupted or of another installation, and the service cannot start until you
   * repair that
   * @throws {Unfit} the storage fails; a later attempt may succeed
   */
  inspect(): Promise<FolderFacts> {
    this.#looked ??= this.#inspect().catch((error) => {
      this.#looked = undefined
      throw error
    })
    return this.#looked
  }

  /**
   * Records in each file which files are beside it. Call this method when all files are open. From then on, each file
   * that is not derived shows when another one is missing.
   */
  noteSiblings(): void {
    const { files } = this.#options
    const names = files.map(({ path }) => basename(path))
    for (const { path, isDerived } of files) if (!isDerived) noteSiblings(path, names)
  }

  async #inspect(): Promise<FolderFacts> {
    const { files, readInstallationId, newId } = this.#options
    const there: FolderFile[] = []
    const marks = new Map<string, StoreMark | null>()
    for (const file of files) {
      // An empty file has no data: SQLite creates one before it writes.
      const mark = (statSync(file.path, { throwIfNoEntry: false })?.size ?? 0) === 0 ? undefined : looked(file)
      if (mark === undefined) continue
      there.push(file)
      if (!file.isDerived) marks.set(file.path, mark)
    }
    const primary = [...marks.keys()]
    const [marked] = primary.flatMap((file) => marks.get(file)?.id ?? [])
    const installation = { id: (await readInstallationId()) ?? marked ?? newId() }
    for (const file of primary) {
      const mark = marks.get(file)
      const problem = mark && explainMismatch(file, mark, installation)
      if (problem) throw new Error(problem)
    }
    // Version 0.1.0 recorded no siblings, and created all files at its first start.
    const expected = new Set(primary.flatMap((file) => marks.get(file)?.siblings ?? files.map(({ path }) => basename(path))))
    const lost = files.filter((file) => !there.includes(file) && expected.has(basename(file.path)))
    const lostForGood = lost.find(({ isDerived }) => !isDerived)
    if (lostForGood)
      throw new Error(
        `${lostForGood.path} is missing, though ${primary.map((file) => basename(file)).join(', ')} of the same installation are there. ` +
          'Restore it from a backup of the same time as the others; without one, restore the whole folder.',
      )
    return { installation, lost: lost.map(({ path }) => path) }
  }
}

/**
 * Returns the mark of an existing file; undefined: the process was killed while it created the file. For a derived
 * file, reports only that the file is newer; its other problems are reported when it is opened.
 * @throws {Error} as `inspect`
 */
function looked({ path, schemaVersion, isDerived }: FolderFile): StoreMark | null | undefined {
  try {
    refuseClosed(path)
    // The lock comes first, because opening the file creates a missing log.
    using lock = new FileLock(path)
    if (!isDerived) refuseMissingLog(path, lock)
    else if (lock.missingLog) return null
    if (existsSync(`${path}-journal`)) rollBack(path)
    const { mark, version } = markOfFile(path)
    if (version > schemaVersion) throw new NewerFile(path, version, schemaVersion)
    return version === 0 && !mark && !isDerived ? undefined : mark
  } catch (error) {
    const failure = toStorageFailure(error) ? toOpeningFailure(path, error) : error
    if (isDerived && failure instanceof Corrupted) return null
    throw failure
  }
}

/**
 * Rolls back what a process had started that was killed while it created the file. Only a connection that may write can
 * do this.
 */
function rollBack(path: string): void {
  using database = new DatabaseSync(path)
  database.prepare('SELECT count(*) FROM sqlite_schema').get()
}

/**
 * SQLite would open a read-only file, and create a log beside it that stays read-only after the file is repaired.
 * @throws {Unfit} the file is read-only
 */
function refuseClosed(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
  } catch (error) {
    throw new Unfit([`${path} cannot be opened: ${(error as Error).message}`], { cause: error })
  }
}

/** The result of inspecting a data folder. */
export interface FolderFacts {
  readonly installation: Installation
  /** Derived files of the installation that are missing. */
  readonly lost: readonly string[]
}
