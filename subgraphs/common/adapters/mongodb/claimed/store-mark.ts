import type { Db } from 'mongodb'
import { explainForeign, type Installation } from '../../../identity/installation.ts'
import { isDuplicateKey } from '../failures.ts'

interface Mark {
  readonly _id: 'installation'
  readonly installationId: string
  readonly secretFingerprint: string
}

/** A claim without an id is for the database that names the installation: the first caller gives it a new id. */
export type Claim = Installation | { readonly id: null; readonly newId: () => string; readonly secretFingerprint: string }

/**
 * Marks a database if it has no mark. Gives its mark.
 * @throws {Error} it has the mark of another installation or another secret
 */
export async function claimDatabase(db: Db, claiming: () => Promise<Claim>): Promise<Installation> {
  const claim = await claiming()
  const found = await markIn(db, claim)
  const own = { id: claim.id ?? found.id, secretFingerprint: claim.secretFingerprint }
  const problem = explainForeign(`The database ${db.databaseName} in MongoDB`, found, own)
  if (problem) throw new Error(problem)
  return found
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
