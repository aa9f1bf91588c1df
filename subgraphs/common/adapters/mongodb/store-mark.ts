import type { Db } from 'mongodb'
import type { MongoDatabase } from '../../documents/mongodb-url.ts'
import { explainForeign, hasToMove, type Installation, type OwnInstallation } from '../../identity/installation.ts'
import type { Log } from '../../process/log.ts'
import type { SecretMark } from '../../rotation/secret-mark.ts'
import type { Kind } from '../documents/kinds.ts'
import { connectMongo } from './connection.ts'
import { isDuplicateKey, translated } from './failures.ts'
import { migrateDatabase } from './migrate-database.ts'

interface Mark {
  readonly _id: 'installation'
  readonly installationId: string
  readonly secretFingerprint: string
}

/** A claim without an id is for the database that names the installation: the first caller gives it a new id. */
type Claim = OwnInstallation | (Omit<OwnInstallation, 'id'> & { readonly id: null; readonly newId: () => string })

/**
 * Prepares a database for use: checks that the server is suitable, marks the database if it has no mark, and brings its
 * documents to the current version. Gives its mark.
 * @throws {Error} it has the mark of another installation or another secret, or documents of a newer version
 * @throws {Unfit} the server cannot serve
 */
export async function claimDatabase(
  { url, database }: MongoDatabase,
  claiming: () => Promise<Claim>,
  { kinds, log }: { readonly kinds: readonly Kind[]; readonly log: Log },
): Promise<Installation> {
  const client = await connectMongo({ url, database })
  try {
    const db = client.db(database)
    const claim = await claiming()
    const found = await markIn(db, claim)
    const own = { ...claim, id: claim.id ?? found.id }
    const problem = explainForeign(nameOf(database), found, own)
    if (problem) throw new Error(problem)
    if (hasToMove(found, own)) await setSecret(db, own)
    await migrateDatabase(db, kinds, log)
    return found
  } catch (error) {
    throw translated(error, 'installation', 'The document store')
  } finally {
    await client.close()
  }
}

/** The secret in the mark of a claimed database. `found`: its mark. */
export function secretMarkOf({ url, database }: MongoDatabase, found: Installation, own: OwnInstallation): SecretMark {
  return {
    store: nameOf(database),
    fingerprint: found.secretFingerprint,
    async move() {
      const client = await connectMongo({ url, database })
      try {
        await setSecret(client.db(database), own)
      } catch (error) {
        throw translated(error, 'installation', 'The document store')
      } finally {
        await client.close()
      }
    },
  }
}

const nameOf = (database: string) => `The database ${database} in MongoDB`

async function setSecret(db: Db, { secretFingerprint }: Installation): Promise<void> {
  await db.collection<Mark>('installation').updateOne({ _id: 'installation' }, { $set: { secretFingerprint } })
}

async function markIn(db: Db, claim: Claim): Promise<Installation> {
  const first = { installationId: claim.id ?? claim.newId(), secretFingerprint: claim.secretFingerprint }
  const marked = () =>
    db
      .collection<Mark>('installation')
      .findOneAndUpdate({ _id: 'installation' }, { $setOnInsert: first }, { upsert: true, returnDocument: 'after' })
  // Another process of the same first start was faster.
  const mark = await marked().catch((error) => (isDuplicateKey(error) ? marked() : Promise.reject(error)))
  return { id: mark!.installationId, secretFingerprint: mark!.secretFingerprint }
}
