import type { Db } from 'mongodb'
import type { MongoDatabase } from '../../documents/mongodb-url.ts'
import { explainForeign, type Installation } from '../../identity/installation.ts'
import type { Log } from '../../process/log.ts'
import { Unfit } from '../../process/opening.ts'
import type { Kind } from '../documents/kinds.ts'
import { connectMongo } from './connection.ts'
import { isDuplicateKey, translated } from './failures.ts'
import { migrateDatabase } from './migrate-database.ts'

export interface Mark {
  readonly _id: 'installation'
  readonly installationId: string
  readonly secretFingerprint: string
  /** Set while `kis copy` fills the database. */
  readonly copying?: true
}

/** The collection of the mark. */
export const MARKS = 'installation'

/** A claim without an id is for the database that names the installation: the first caller gives it a new id. */
type Claim = Installation | { readonly id: null; readonly newId: () => string; readonly secretFingerprint: string }

/**
 * Prepares a database for use: checks that the server is suitable, marks the database if it has no mark, and brings its
 * documents to the current version. Gives its mark.
 * @throws {Error} it has the mark of another installation or another secret, or documents of a newer version
 * @throws {Unfit} the server cannot serve, or a copy into the database has not ended; `isCopy` goes on with that copy
 */
export async function claimDatabase(
  { url, database }: MongoDatabase,
  claiming: () => Promise<Claim>,
  { kinds, log, isCopy = false }: { readonly kinds: readonly Kind[]; readonly log: Log; readonly isCopy?: boolean },
): Promise<Installation> {
  const client = await connectMongo({ url, database })
  try {
    const db = client.db(database)
    const claim = await claiming()
    const mark = await markIn(db, claim)
    if (mark.copying && !isCopy)
      throw new Unfit([`a copy into the database ${database} in MongoDB has not ended: let it end, or run \`kis copy\` again`])
    const found = { id: mark.installationId, secretFingerprint: mark.secretFingerprint }
    const own = { id: claim.id ?? found.id, secretFingerprint: claim.secretFingerprint }
    const problem = explainForeign(`The database ${database} in MongoDB`, found, own)
    if (problem) throw new Error(problem)
    await migrateDatabase(db, kinds, log)
    return found
  } catch (error) {
    throw translated(error, 'installation', 'The document store')
  } finally {
    await client.close()
  }
}

async function markIn(db: Db, claim: Claim): Promise<Mark> {
  const first = { installationId: claim.id ?? claim.newId(), secretFingerprint: claim.secretFingerprint }
  const marked = () =>
    db.collection<Mark>(MARKS).findOneAndUpdate({ _id: 'installation' }, { $setOnInsert: first }, { upsert: true, returnDocument: 'after' })
  // Another process of the same first start was faster.
  return (await marked().catch((error) => (isDuplicateKey(error) ? marked() : Promise.reject(error))))!
}
