import type { Db } from 'mongodb'
import { explainMismatch, type Installation } from '../../identity/installation.ts'
import type { OwnMark } from '../own-documents.ts'
import { isDuplicateKey } from './failures.ts'

/** The collection of the mark. */
export const MARKS = 'installation'

export interface Mark {
  readonly _id: 'installation'
  readonly installationId: string
  /** Of the secret with which version 0.2 made the database. */
  readonly secretFingerprint?: string
}

/** A claim without an id is for the database that names the installation: the first caller gives it a new id. */
export type Claim = Installation | { readonly id: null; readonly newId: () => string }

/**
 * Marks a database if it has no mark. Gives the mark that it has.
 * @throws {Error} it has the mark of another installation
 */
export async function claimDatabase(db: Db, claiming: () => Promise<Claim>): Promise<OwnMark> {
  const claim = await claiming()
  const { installationId: id, secretFingerprint: madeWith = null } = await markIn(db, claim)
  const problem = explainMismatch(`The database ${db.databaseName} in MongoDB`, { id }, { id: claim.id ?? id })
  if (problem) throw new Error(problem)
  return { installation: { id }, madeWith }
}

async function markIn(db: Db, claim: Claim): Promise<Mark> {
  const first = { installationId: claim.id ?? claim.newId() }
  const marked = () =>
    db.collection<Mark>(MARKS).findOneAndUpdate({ _id: 'installation' }, { $setOnInsert: first }, { upsert: true, returnDocument: 'after' })
  // Another process of the same first start was faster.
  return (await marked().catch((error) => (isDuplicateKey(error) ? marked() : Promise.reject(error))))!
}
