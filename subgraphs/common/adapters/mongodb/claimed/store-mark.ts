import type { Db } from 'mongodb'
import { explainForeign, type Installation } from '../../../identity/installation.ts'
import { Unfit } from '../../../process/opening.ts'
import { isDuplicateKey } from '../failures.ts'

/** The collection of the mark. */
export const MARKS = 'installation'

export interface Mark {
  readonly _id: 'installation'
  readonly installationId: string
  readonly secretFingerprint: string
  /** Set while `kis copy` fills the database. */
  readonly copying?: true
}

/** A claim without an id is for the database that names the installation: the first caller gives it a new id. */
export type Claim = Installation | { readonly id: null; readonly newId: () => string; readonly secretFingerprint: string }

/**
 * Marks a database if it has no mark. Gives its mark.
 * @throws {Error} it has the mark of another installation or another secret
 * @throws {Unfit} a copy into it has not ended; `isCopy` goes on with that copy
 */
export async function claimDatabase(db: Db, claiming: () => Promise<Claim>, isCopy = false): Promise<Installation> {
  const claim = await claiming()
  const mark = await markIn(db, claim)
  if (mark.copying && !isCopy)
    throw new Unfit([`a copy into the database ${db.databaseName} in MongoDB has not ended: let it end, or run \`kis copy\` again`])
  const found = { id: mark.installationId, secretFingerprint: mark.secretFingerprint }
  const own = { id: claim.id ?? found.id, secretFingerprint: claim.secretFingerprint }
  const problem = explainForeign(`The database ${db.databaseName} in MongoDB`, found, own)
  if (problem) throw new Error(problem)
  return found
}

async function markIn(db: Db, claim: Claim): Promise<Mark> {
  const first = { installationId: claim.id ?? claim.newId(), secretFingerprint: claim.secretFingerprint }
  const marked = () =>
    db.collection<Mark>(MARKS).findOneAndUpdate({ _id: 'installation' }, { $setOnInsert: first }, { upsert: true, returnDocument: 'after' })
  // Another process of the same first start was faster.
  return (await marked().catch((error) => (isDuplicateKey(error) ? marked() : Promise.reject(error))))!
}
