import type { Db } from 'mongodb'
import type { Log } from '../../process/log.ts'
import { Unfit } from '../../process/opening.ts'
import { type AnyDocument, currentVersion, type Kind, migrated, newerKind } from '../documents/kinds.ts'
import { type Stored, toStored } from '../documents/stored-value.ts'
import { toBson } from './bson.ts'

/** Documents in memory at once. */
const PAGE = 256
/** A migrating process that reports nothing for this long counts as dead. Another one starts again. */
const LEASE_MS = 60_000

interface Version {
  readonly _id: string
  readonly version: number
  /** Set while a process migrates the kind; only one does at a time. */
  readonly migratingUntil?: Date
}

/**
 * Brings the documents of a database to the current version of their kinds, and notes the versions. A database without
 * the note comes from version 0.1.0, where each kind has version 1. No process of an earlier version may run meanwhile.
 * @throws {Error} a kind is newer than this program knows
 * @throws {Unfit} another process is migrating
 */
export async function migrateDatabase(db: Db, kinds: readonly Kind[], log: Log): Promise<void> {
  const versions = db.collection<Version>('schema_versions')
  const noted = new Map((await versions.find().toArray()).map(({ _id, version }) => [_id, version]))
  for (const kind of kinds) {
    const problem = newerKind(`The database ${db.databaseName} in MongoDB`, kind, noted.get(kind.name) ?? 1)
    if (problem) throw new Error(problem)
  }
  for (const kind of kinds) {
    const from = noted.get(kind.name)
    if (from === currentVersion(kind)) continue
    const isEmpty = (await db.collection(kind.name).findOne({}, { projection: { _id: 1 } })) === null
    if (!isEmpty && (from ?? 1) < currentVersion(kind)) await migrateKind(db, kind, from ?? 1, log)
    await versions.updateOne(
      { _id: kind.name },
      { $set: { version: currentVersion(kind) }, $unset: { migratingUntil: '' } },
      { upsert: true },
    )
  }
}

async function migrateKind(db: Db, kind: Kind, from: number, log: Log): Promise<void> {
  const versions = db.collection<Version>('schema_versions')
  const until = () => new Date(Date.now() + LEASE_MS)
  await versions.updateOne({ _id: kind.name }, { $setOnInsert: { version: from } }, { upsert: true })
  const isFree = { $or: [{ migratingUntil: { $exists: false } }, { migratingUntil: { $lt: new Date() } }] }
  const taken = await versions.findOneAndUpdate({ _id: kind.name, version: from, ...isFree }, { $set: { migratingUntil: until() } })
  if (!taken) throw new Unfit([`another process is migrating the documents of the kind ${kind.name} to version ${currentVersion(kind)}`])
  log.warn({ kind: kind.name, from, to: currentVersion(kind) }, 'migrating the documents to the version of this program')
  const documents = db.collection<AnyDocument>(kind.name)
  for (let after = ''; ; ) {
    const page = (await documents
      .find({ _id: { $gt: after } })
      .sort({ _id: 1 })
      .limit(PAGE)
      .toArray()) as AnyDocument[]
    if (page.length > 0)
      await documents.bulkWrite(
        page.map((document) => ({
          replaceOne: {
            filter: { _id: document._id },
            replacement: toBson(toStored(migrated(document, kind, from), kind.name) as Stored) as AnyDocument,
          },
        })),
      )
    if (page.length < PAGE) return
    after = page.at(-1)!._id
    await versions.updateOne({ _id: kind.name }, { $set: { migratingUntil: until() } })
  }
}
