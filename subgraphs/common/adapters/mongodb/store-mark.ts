import type { Db } from 'mongodb'
import { explainMismatch, type Installation } from '../../identity/installation.ts'
import type { OwnMark } from '../own-documents.ts'
import { isDuplicateKey } from './failures.ts'

/** The collection of the installation mark. */
export const MARKS = 'installation'

/** The mark of a database: the installation that owns it. */
export interface Mark {
  readonly _id: 'installation'
  readonly installationId: string
  /** Fingerprint of the secret with which version 0.2 created the database. */
  readonly secretFingerprint?: string
}

/** A claim without an id is for the database that names the installation: the first process gets a new id for it. */
export type Claim = Installation | { readonly id: null; readonly newId: () => string }

/**
 * Marks a database if it has no mark. Returns its mark.
 * @throws {Error} the mark is of another installation
 */
export async function claimDatabase(db: Db, claiming: () => Promise<Claim>): Promise<OwnMark> {
  const claim = await claiming()
  const { installationId: id, secretFingerprint = null } = await markIn(db, claim)
  const problem = explainMismatch(`The database ${db.databaseName} in MongoDB`, { id }, { id: claim.id ?? id })
  if (problem) throw new Error(problem)
  return { installation: { id }, secretFingerprint }
}

async function markIn(db: Db, claim: Claim): Promise<Mark> {
  const first = { installationId: claim.id ?? claim.newId() }
  const marked = () =>
    db.collection<Mark>(MARKS).findOneAndUpdate({ _id: 'installation' }, { $setOnInsert: first }, { upsert: true, returnDocument: 'after' })
  // Another process of the same first start has written the mark.
  return (await marked().catch((error) => (isDuplicateKey(error) ? marked() : Promise.reject(error))))!
}
