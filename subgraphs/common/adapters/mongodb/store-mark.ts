import { foreignnessOf, type Installation } from '../../installation.ts'
import type { MongoDatabase } from '../../mongodb-url.ts'
import { connectMongo } from './connection.ts'
import { translated } from './failures.ts'

interface Mark {
  readonly _id: 'installation'
  readonly installationId: string
  readonly secretFingerprint: string
}

/** What is claimed without an id is the database that names the installation: the first caller gives it a new one. */
type Claim = Installation | { readonly id: null; readonly newId: () => string; readonly secretFingerprint: string }

/** Marks a database that has no mark yet, and gives the mark that it has. @throws {Error} it has the mark of another installation, or of another secret. @throws {Unfit} the server cannot serve. */
export async function claimDatabase({ url, database }: MongoDatabase, claim: Claim): Promise<Installation> {
  const { secretFingerprint } = claim
  const client = await connectMongo({ url, database })
  try {
    const marks = client.db(database).collection<Mark>('installation')
    const mark = await marks
      .findOneAndUpdate(
        { _id: 'installation' },
        { $setOnInsert: { installationId: claim.id ?? claim.newId(), secretFingerprint } },
        { upsert: true, returnDocument: 'after' },
      )
      .catch((error) => {
        throw translated(error, 'installation', 'The document store')
      })
    const found: Installation = { id: mark!.installationId, secretFingerprint: mark!.secretFingerprint }
    const problem = foreignnessOf(`The database ${database} in MongoDB`, found, { id: claim.id ?? found.id, secretFingerprint })
    if (problem) throw new Error(problem)
    return found
  } finally {
    await client.close()
  }
}
