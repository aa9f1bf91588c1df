import type { Db } from 'mongodb'
import { explainForeign, hasToMove, type Installation, type OwnInstallation } from '../../identity/installation.ts'
import type { SecretMark } from '../../rotation/secret-mark.ts'
import { isDuplicateKey } from './failures.ts'

/** The collection of the mark. */
export const MARKS = 'installation'

export interface Mark {
  readonly _id: 'installation'
  readonly installationId: string
  readonly secretFingerprint: string
}

/** A claim without an id is for the database that names the installation: the first caller gives it a new id. */
export type Claim = OwnInstallation | (Omit<OwnInstallation, 'id'> & { readonly id: null; readonly newId: () => string })

/**
 * Marks a database if it has no mark, and moves the mark of one in which nothing depends on the previous secret. Gives
 * the mark that it had.
 * @throws {Error} it has the mark of another installation or another secret
 */
export async function claimDatabase(
  db: Db,
  claiming: () => Promise<Claim>,
): Promise<{ readonly installation: Installation; readonly secretMark: SecretMark }> {
  const claim = await claiming()
  const mark = await markIn(db, claim)
  const installation = { id: mark.installationId, secretFingerprint: mark.secretFingerprint }
  const own = { ...claim, id: claim.id ?? installation.id }
  const store = `The database ${db.databaseName} in MongoDB`
  const problem = explainForeign(store, installation, own)
  if (problem) throw new Error(problem)
  if (hasToMove(installation, own)) await setSecret(db, own)
  return { installation, secretMark: { store, fingerprint: mark.secretFingerprint, move: () => setSecret(db, own) } }
}

async function setSecret(db: Db, { secretFingerprint }: Installation): Promise<void> {
  await db.collection<Mark>(MARKS).updateOne({ _id: 'installation' }, { $set: { secretFingerprint } })
}

async function markIn(db: Db, claim: Claim): Promise<Mark> {
  const first = { installationId: claim.id ?? claim.newId(), secretFingerprint: claim.secretFingerprint }
  const marked = () =>
    db.collection<Mark>(MARKS).findOneAndUpdate({ _id: 'installation' }, { $setOnInsert: first }, { upsert: true, returnDocument: 'after' })
  // Another process of the same first start was faster.
  return (await marked().catch((error) => (isDuplicateKey(error) ? marked() : Promise.reject(error))))!
}
