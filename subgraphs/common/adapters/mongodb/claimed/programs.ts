import type { Collection, Db } from 'mongodb'
import { randomHex } from '../../../process/ids.ts'
import type { Log } from '../../../process/log.ts'
import { currentVersion, type Kind } from '../../documents/kinds.ts'

/** How often a program says that it is there. */
const SIGN_EVERY_MS = 30_000
/** A program that has said nothing for this long counts as gone. */
const GONE_AFTER_MS = 120_000

/** The collection in which they tell. */
export const PROGRAMS = 'programs'

export interface Program {
  readonly _id: string
  /** The versions that it knows, by kind. */
  readonly kinds: Readonly<Record<string, number>>
  readonly seenAt: Date
}

/** The programs that use a database at this time, one for each process, so that all know which versions are in use. */
export class Programs implements AsyncDisposable {
  readonly #programs: Collection<Program>
  readonly #own: Omit<Program, 'seenAt'>
  readonly #log: Log
  readonly #timer: NodeJS.Timeout
  #signing: Promise<unknown> = Promise.resolve()

  private constructor(db: Db, kinds: readonly Kind[], log: Log) {
    this.#programs = db.collection(PROGRAMS)
    this.#own = { _id: randomHex(16), kinds: Object.fromEntries(kinds.map((kind) => [kind.name, currentVersion(kind)])) }
    this.#log = log
    this.#timer = setInterval(() => {
      this.#signing = this.#sign().catch((error) =>
        this.#log.warn({ err: error }, 'the programs of the database were not told of this one'),
      )
    }, SIGN_EVERY_MS).unref()
  }

  /** Tells all others of this one, until it is disposed. */
  static async join(db: Db, kinds: readonly Kind[], log: Log): Promise<Programs> {
    const programs = new Programs(db, kinds, log)
    try {
      await programs.#programs.deleteMany({ seenAt: { $lt: goneBefore() } })
      await programs.#sign()
      return programs
    } catch (error) {
      clearInterval(programs.#timer)
      throw error
    }
  }

  /** Whether a program is there that knows the kind, and not the version. */
  async knowLess(kind: string, version: number): Promise<boolean> {
    const found = await this.#programs.findOne({ seenAt: { $gte: goneBefore() }, [`kinds.${kind}`]: { $lt: version } })
    return found !== null
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#signing
    // If the server is away, the others wait until it counts as gone.
    await this.#programs.deleteOne({ _id: this.#own._id }).catch(() => undefined)
  }

  async #sign(): Promise<void> {
    const { _id, kinds } = this.#own
    await this.#programs.updateOne({ _id }, { $set: { kinds, seenAt: new Date() } }, { upsert: true })
  }
}

export function goneBefore(): Date {
  return new Date(Date.now() - GONE_AFTER_MS)
}
