import type { Collection, Db } from 'mongodb'
import { randomHex } from '../../process/ids.ts'
import { currentVersion, type Kind } from '../documents/kinds.ts'
import type { EarlierPrograms } from '../documents/migrate.ts'

/** A program that has said nothing for this long counts as ended. It says something every 30 s. */
const GONE_AFTER_MS = 120_000

/** The collection in which they tell. */
const PROGRAMS = 'programs'

interface Program {
  readonly _id: string
  /** The versions that it knows, by kind. */
  readonly kinds: Readonly<Record<string, number>>
  /** 1970: it has ended. */
  readonly seenAt: Date
  /** Absent: it deletes this as it ends, as those of version 0.2 do. */
  readonly leavesWord?: true
}

/**
 * The programs that use a database, one for each process. What one says of itself stays when it has ended, until one
 * that knows at least as much starts, or has migrated what it wrote.
 */
export class Programs {
  readonly #programs: Collection<Program>
  readonly #own: Omit<Program, 'seenAt'>

  constructor(db: Db, kinds: readonly Kind[]) {
    this.#programs = db.collection(PROGRAMS)
    const versions = Object.fromEntries(kinds.map((kind) => [kind.name, currentVersion(kind)]))
    this.#own = { _id: randomHex(16), kinds: versions, leavesWord: true }
  }

  /** Tells all others that this one is there. Repeat it while it is. */
  async sign(seenAt = new Date()): Promise<void> {
    const { _id, ...own } = this.#own
    await this.#programs.updateOne({ _id }, { $set: { ...own, seenAt } }, { upsert: true })
  }

  /** Forgets those that have ended and know no more than this one, which has signed. */
  async purgeEqual(): Promise<void> {
    const knowsLess = Object.entries(this.#own.kinds).map(([kind, version]) => ({ [`kinds.${kind}`]: { $lt: version } }))
    await this.#programs.deleteMany({ seenAt: { $lt: goneBefore() }, $nor: [{ _id: this.#own._id }, ...knowsLess] })
  }

  /** Call it when this one has written its last document. */
  ended(): Promise<void> {
    return this.sign(new Date(0))
  }

  /** As if this one had never been there: it has written nothing. */
  async purgeOwn(): Promise<void> {
    await this.#programs.deleteOne({ _id: this.#own._id })
  }

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
      // One that says something again was only silent.
      purge: async () => void (await this.#programs.deleteMany({ _id: { $in: ended }, seenAt: { $lt: goneBefore() } })),
    }
  }
}

export async function isAnyRunning(db: Db): Promise<boolean> {
  return (await db.collection<Program>(PROGRAMS).findOne({ seenAt: { $gte: goneBefore() } })) !== null
}

function goneBefore(): Date {
  return new Date(Date.now() - GONE_AFTER_MS)
}
