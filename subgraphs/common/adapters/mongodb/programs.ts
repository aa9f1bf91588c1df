import type { Collection, Db } from 'mongodb'
import { randomHex } from '../../process/ids.ts'
import { currentVersion, type Kind } from '../documents/kinds.ts'
import type { EarlierPrograms } from '../documents/migrate.ts'

/** A program without a heartbeat for this long counts as ended. Programs send one every 30 s. */
const GONE_AFTER_MS = 120_000

/** The collection in which programs register. */
const PROGRAMS = 'programs'

interface Program {
  readonly _id: string
  /** The versions that the program knows, by kind. */
  readonly kinds: Readonly<Record<string, number>>
  /** Time of the last heartbeat. 1970: the program has ended. */
  readonly seenAt: Date
  /** Absent: the program deletes its record as it ends, as programs of version 0.2 do. */
  readonly leavesWord?: true
}

/**
 * The programs that use a database, one for each process. The record of an ended program stays until a program that
 * knows at least as much starts, or has migrated what the ended one wrote.
 */
export class Programs {
  readonly #programs: Collection<Program>
  readonly #own: Omit<Program, 'seenAt'>

  constructor(db: Db, kinds: readonly Kind[]) {
    this.#programs = db.collection(PROGRAMS)
    const versions = Object.fromEntries(kinds.map((kind) => [kind.name, currentVersion(kind)]))
    this.#own = { _id: randomHex(16), kinds: versions, leavesWord: true }
  }

  /** Registers this program, or renews its registration. Repeat it while the program runs. */
  async sign(seenAt = new Date()): Promise<void> {
    const { _id, ...own } = this.#own
    await this.#programs.updateOne({ _id }, { $set: { ...own, seenAt } }, { upsert: true })
  }

  /** Deletes the records of ended programs that know no more than this one, which has signed. */
  async purgeEqual(): Promise<void> {
    const knowsLess = Object.entries(this.#own.kinds).map(([kind, version]) => ({ [`kinds.${kind}`]: { $lt: version } }))
    await this.#programs.deleteMany({ seenAt: { $lt: goneBefore() }, $nor: [{ _id: this.#own._id }, ...knowsLess] })
  }

  /** Call this method after the last write of this program. */
  ended(): Promise<void> {
    return this.sign(new Date(0))
  }

  /** Deletes the record of this program, which has written nothing. */
  async purgeOwn(): Promise<void> {
    await this.#programs.deleteOne({ _id: this.#own._id })
  }

  /** Returns the other programs that know an earlier version of the kind; null: there are none. */
  async earlier(kind: string, version: number): Promise<EarlierPrograms | null> {
    const found = await this.#programs.find({ [`kinds.${kind}`]: { $lt: version } }).toArray()
    if (found.length === 0) return null
    const isRunning = ({ seenAt }: Program) => seenAt >= goneBefore()
    const running = found.filter(isRunning)
    const ended = found.filter((program) => !isRunning(program)).map(({ _id }) => _id)
    return {
      oldest: Math.min(...found.map(({ kinds }) => kinds[kind]!)),
      areRunning: running.length > 0,
      staysRegistered: running.every(({ leavesWord }) => leavesWord),
      // A program that has sent a heartbeat again was only paused.
      purge: async () => void (await this.#programs.deleteMany({ _id: { $in: ended }, seenAt: { $lt: goneBefore() } })),
    }
  }
}

/** Returns whether a program has sent a heartbeat in the last 120 s. */
export async function isAnyRunning(db: Db): Promise<boolean> {
  return (await db.collection<Program>(PROGRAMS).findOne({ seenAt: { $gte: goneBefore() } })) !== null
}

function goneBefore(): Date {
  return new Date(Date.now() - GONE_AFTER_MS)
}
