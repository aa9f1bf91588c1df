import type { Collection, Db, UpdateFilter } from 'mongodb'
import type { Log } from '../../../process/log.ts'
import { Unfit } from '../../../process/opening.ts'
import { currentVersion, type Kind, newerKind } from '../../documents/kinds.ts'
import { convertDocuments } from './convert-documents.ts'
import { Programs } from './programs.ts'

/** A converting process that reports nothing for this long counts as dead. Another one goes on where it was. */
const LEASE_MS = 60_000
/** How often a running program looks for what could not be finished because earlier programs were there. */
const FINISH_EVERY_MS = 30_000

/** The collection of the notes. */
export const NOTES = 'schema_versions'

/** What is known of the documents of one kind. */
export interface Note {
  readonly _id: string
  /** Every document has this shape, but for those that earlier programs have written since. */
  readonly version: number
  /** The earliest version of a program that can still read all documents. Absent: `version`. */
  readonly oldestProgram?: number
  /** The earliest version that a document may have, while `oldestProgram` is already later. Absent: `oldestProgram`. */
  readonly oldestDocument?: number
  /** Counts the reasons to look for documents that earlier programs have written. Absent: there is none. */
  readonly unswept?: number
  /** Set while documents are brought to this version. Only one process does that at a time. */
  readonly to?: number
  readonly migratingUntil?: Date
  /** The last document that was converted, how many were, and how many there are. */
  readonly after?: string
  readonly done?: number
  readonly of?: number
}

/**
 * Keeps the documents of a database in the version that this program needs, while programs of the version before use
 * it: expanding steps run before this program serves, contracting ones when no earlier program is left. A database
 * without notes comes from version 0.1.0, where each kind has version 1.
 */
export class Upgrade implements AsyncDisposable {
  readonly #db: Db
  readonly #notes: Collection<Note>
  readonly #kinds: readonly Kind[]
  readonly #programs: Programs
  readonly #log: Log
  #timer: NodeJS.Timeout | undefined
  #finishing: Promise<void> = Promise.resolve()
  #isDisposed = false

  private constructor(db: Db, kinds: readonly Kind[], programs: Programs, log: Log) {
    this.#db = db
    this.#notes = db.collection(NOTES)
    this.#kinds = kinds
    this.#programs = programs
    this.#log = log
  }

  /**
   * Resolves when this program can serve. Disposing it ends the work that goes on.
   * @throws {Error} a kind is newer than this program knows
   * @throws {Unfit} another process is converting, or earlier programs must stop first
   */
  static async begin(db: Db, kinds: readonly Kind[], log: Log): Promise<Upgrade> {
    // Before the notes are read: whoever removes what this program reads notes that first, and then looks who is there.
    const programs = await Programs.join(db, kinds, log)
    const upgrade = new Upgrade(db, kinds, programs, log)
    try {
      for (const kind of kinds) await upgrade.#admit(kind)
      for (const kind of kinds) await upgrade.#reach(kind, lastExpanded(kind))
    } catch (error) {
      await programs[Symbol.asyncDispose]()
      throw error
    }
    upgrade.#finishAfter(0)
    return upgrade
  }

  /**
   * Does what was left because earlier programs were there, for each kind of which none is there any more. Calls run one
   * after the other, so that none meets the lease of another one of this process.
   */
  finish(): Promise<void> {
    this.#finishing = this.#finishing.then(async () => {
      for (const kind of this.#kinds) await this.#finishKind(kind).catch((error) => this.#tell(kind, error))
    })
    return this.#finishing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true
    clearTimeout(this.#timer)
    await this.#finishing
    await this.#programs[Symbol.asyncDispose]()
  }

  #finishAfter(ms: number): void {
    this.#timer = setTimeout(async () => {
      await this.finish()
      if (!this.#isDisposed) this.#finishAfter(FINISH_EVERY_MS)
    }, ms).unref()
  }

  async #finishKind(kind: Kind): Promise<void> {
    const note = await this.#read(kind)
    const current = currentVersion(kind)
    if (note.version > current || (await this.#programs.knowLess(kind.name, current))) return
    if (note.version < current) await this.#reach(kind, current)
    else if (note.unswept !== undefined) await this.#sweep(kind)
  }

  #tell(kind: Kind, error: unknown): void {
    if (error instanceof Unfit) this.#log.info({ kind: kind.name }, error.message)
    else this.#log.warn({ kind: kind.name, err: error }, 'the documents are not all in the version of this program yet; trying again')
  }

  async #read(kind: Kind): Promise<Note> {
    return (await this.#notes.findOne({ _id: kind.name })) ?? { _id: kind.name, version: 1 }
  }

  /** @throws {Error} the kind is newer than this program knows */
  async #admit(kind: Kind): Promise<void> {
    const found = await this.#notes.findOne({ _id: kind.name })
    if (!found) {
      const isEmpty = (await this.#db.collection(kind.name).findOne({}, { projection: { _id: 1 } })) === null
      await this.#notes.updateOne({ _id: kind.name }, { $setOnInsert: { version: isEmpty ? currentVersion(kind) : 1 } }, { upsert: true })
    }
    const { version, oldestProgram = version, to = version } = await this.#read(kind)
    const problem = newerKind(`The database ${this.#db.databaseName} in MongoDB`, kind, oldestProgram)
    if (problem) throw new Error(problem)
    // What this program writes has the shape that it knows.
    if (to > currentVersion(kind)) await this.#notes.updateOne({ _id: kind.name }, { $inc: { unswept: 1 } })
  }

  /** Brings the documents to the version, by runs of steps of one phase. */
  async #reach(kind: Kind, wanted: number): Promise<void> {
    for (let note = await this.#read(kind); note.version < wanted; note = await this.#read(kind)) {
      const { phase } = kind.migrations[note.version - 1]!
      const end = kind.migrations.findIndex((step, i) => i >= note.version && step.phase !== phase)
      const to = Math.min(end < 0 ? currentVersion(kind) : end + 1, wanted)
      if (phase === 'contract') await this.#retire(kind, note, to)
      await this.#convert(kind, note, to)
    }
  }

  /**
   * Notes that earlier programs can no longer start, and makes sure that none is there.
   * @throws {Unfit} one is
   */
  async #retire(kind: Kind, note: Note, version: number): Promise<void> {
    for (const isNoted of [false, true]) {
      if (await this.#programs.knowLess(kind.name, version))
        throw new Unfit([
          `documents of the kind ${kind.name} lose what programs of an earlier version read: stop those that use the database ${this.#db.databaseName}`,
        ])
      // Whoever goes on after a crash converts what those programs have written, too.
      const noted = { $max: { oldestProgram: version }, $min: { oldestDocument: oldestDocumentOf(note) } }
      if (!isNoted) await this.#notes.updateOne({ _id: kind.name }, noted)
    }
  }

  async #convert(kind: Kind, note: Note, to: number): Promise<void> {
    const { version: from, oldestProgram = from } = note
    const { after, done } = await this.#take(kind, from, to)
    this.#log.warn({ kind: kind.name, from, to, done }, 'converting the documents to the version of this program')
    const versions = { from: oldestDocumentOf(note), to, ...(after !== undefined && { after }) }
    await convertDocuments(this.#db, kind, versions, this.#reporter(kind, done))
    const isContract = kind.migrations[to - 2]!.phase === 'contract'
    await this.#release(kind, { $set: { version: to, oldestProgram: isContract ? to : oldestProgram }, $unset: { oldestDocument: '' } })
  }

  /** Converts what earlier programs have written since the conversion, when none of them is left. */
  async #sweep(kind: Kind): Promise<void> {
    const note = await this.#read(kind)
    const { version, unswept } = note
    // One that comes from here on counts itself.
    if (unswept === undefined || (await this.#programs.knowLess(kind.name, version))) return
    await this.#take(kind, version, version)
    await convertDocuments(this.#db, kind, { from: oldestDocumentOf(note), to: version }, this.#reporter(kind))
    await this.#release(kind)
    await this.#notes.updateOne({ _id: kind.name, unswept }, { $unset: { unswept: '' } })
    this.#log.info({ kind: kind.name, version }, 'all documents are in the version of this program')
  }

  /**
   * Takes the lease. Gives where an interrupted conversion to the same version left off.
   * @throws {Unfit} another process has it; tells how far that is
   */
  async #take(kind: Kind, from: number, to: number): Promise<Pick<Note, 'after' | 'done'>> {
    const isFree = { $or: [{ migratingUntil: { $exists: false } }, { migratingUntil: { $lt: new Date() } }] }
    const taken = await this.#notes.findOneAndUpdate(
      { _id: kind.name, version: from, ...isFree },
      { $set: { migratingUntil: leaseEnd(), to } },
    )
    if (!taken) {
      const { done = 0, of = 0 } = await this.#read(kind)
      throw new Unfit([`another process brings the documents of the kind ${kind.name} to version ${to}: ${done} of about ${of} are done`])
    }
    // Whoever joins from here on sees `to`, and counts itself.
    if (await this.#programs.knowLess(kind.name, to)) await this.#notes.updateOne({ _id: kind.name }, { $inc: { unswept: 1 } })
    return taken.to === to && to > from ? taken : {}
  }

  async #release(kind: Kind, { $set, $unset }: Pick<UpdateFilter<Note>, '$set' | '$unset'> = {}): Promise<void> {
    const unset = { ...$unset, migratingUntil: '', to: '', after: '', done: '', of: '' } as const
    await this.#notes.updateOne({ _id: kind.name }, { ...($set && { $set }), $unset: unset })
  }

  #reporter(kind: Kind, done = 0): (last: string, count: number) => Promise<void> {
    let of: number | undefined
    return async (after, count) => {
      done += count
      of ??= await this.#db.collection(kind.name).estimatedDocumentCount()
      await this.#notes.updateOne({ _id: kind.name }, { $set: { migratingUntil: leaseEnd(), after, done, of: Math.max(of, done) } })
    }
  }
}

function oldestDocumentOf({ version, oldestProgram = version, oldestDocument = Math.min(oldestProgram, version) }: Note): number {
  return oldestDocument
}

/** The version after the last step that must be done before a program of the current version serves. */
function lastExpanded({ migrations }: Kind): number {
  return 2 + migrations.findLastIndex(({ phase }) => phase === 'expand')
}

function leaseEnd(): Date {
  return new Date(Date.now() + LEASE_MS)
}
