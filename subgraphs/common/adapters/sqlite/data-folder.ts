import { existsSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { foreignnessOf, type Installation } from '../../installation.ts'
import { Damaged } from '../../opening.ts'
import { openingFailureOf } from './database.ts'
import { markOfFile, noteSiblings, type StoreMark } from './store-mark.ts'

export interface DataFolderOptions {
  /** Paths of the files that this process opens. */
  readonly files: readonly string[]
  /** Those that can be filled again from the others, so that they are lost without harm. */
  readonly derived: readonly string[]
  secretFingerprint(): string
  /** Asks billing whose all stores are, where that is another process or keeps its store elsewhere. Null: the files say it. */
  ask(): Promise<string> | null
  /** For an installation whose first start this is. */
  newId(): string
}

/** The files of an installation in one folder, looked at before any is opened: whose they are, and whether one is gone. */
export class DataFolder {
  readonly #options: DataFolderOptions
  #looked: Promise<FolderFacts> | undefined

  constructor(options: DataFolderOptions) {
    this.#options = options
  }

  /** @throws {Error} a file is lost, damaged, or belongs elsewhere: no start until that is mended. @throws {Unfit} the storage fails; later it may not. */
  look(): Promise<FolderFacts> {
    this.#looked ??= this.#look().catch((error) => {
      this.#looked = undefined
      throw error
    })
    return this.#looked
  }

  /** To be called when all files are open: from now on each of them misses the others. */
  noteSiblings(): void {
    const { files } = this.#options
    const names = files.map((file) => basename(file))
    for (const file of files) if (existsSync(file)) noteSiblings(file, names)
  }

  async #look(): Promise<FolderFacts> {
    const { files, derived, secretFingerprint: fingerprint, ask, newId } = this.#options
    // An empty file holds nothing: SQLite makes one before it writes.
    const there = files.filter((file) => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0)
    const marks = new Map<string, StoreMark | null>()
    for (const file of there) {
      try {
        marks.set(file, markOfFile(file))
      } catch (error) {
        const failure = openingFailureOf(file, error)
        // Whoever opens a derived file says what is wrong with it.
        if (!(derived.includes(file) && failure instanceof Damaged)) throw failure
      }
    }
    const primary = there.filter((file) => !derived.includes(file))
    const [marked] = primary.flatMap((file) => marks.get(file)?.id ?? [])
    const id = (await ask()) ?? marked ?? newId()
    const installation: Installation = { id, secretFingerprint: fingerprint() }
    for (const file of primary) {
      const mark = marks.get(file)
      const problem = mark && foreignnessOf(file, mark, installation)
      if (problem) throw new Error(problem)
    }
    // Version 0.1.0 noted nothing, and made all files at its first start.
    const expected = new Set(primary.flatMap((file) => marks.get(file)?.siblings ?? files.map((sibling) => basename(sibling))))
    const lost = files.filter((file) => !there.includes(file) && expected.has(basename(file)))
    const [lostForGood] = lost.filter((file) => !derived.includes(file))
    if (lostForGood)
      throw new Error(
        `${lostForGood} is missing, though ${primary.map((file) => basename(file)).join(', ')} of the same installation are there. ` +
          'Put it back, from a backup of the same time as the others; without one, put the whole folder back.',
      )
    return { installation, lost }
  }
}

export interface FolderFacts {
  readonly installation: Installation
  /** Derived files that the installation had, and that are gone. */
  readonly lost: readonly string[]
}
