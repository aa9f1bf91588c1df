import { randomUUID } from 'node:crypto'
import { MongoClient } from 'mongodb'

const ORDER = 'mongo-java-server orders strings by UTF-16 unit'
const NULL = 'mongo-java-server takes null for an absent field'

/** Cases that the stand-in of `test/engines/mongodb` is known not to meet. */
const STAND_IN_CANNOT: Readonly<Record<string, string>> = {
  'order strings by code point': ORDER,
  '$inc of null fails and changes nothing': NULL,
  '$push to null fails and changes nothing': NULL,
  '$set inside null fails and changes nothing': NULL,
}

/** A name of this run alone, so that runs and suites never meet on one server. */
export function newDatabaseName(): string {
  return `kis_test_${randomUUID().slice(0, 8)}`
}

/** The URL with another database; the one that it names may serve to log in, so `authSource` says where that is. */
export function withDatabase(url: string, database: string): string {
  return url.replace(/^(mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/[^?]*)?/, `$1/${database}`)
}

export async function dropDatabases(url: string, ...names: readonly string[]): Promise<void> {
  await using client = new MongoClient(url)
  for (const name of names) await client.db(name).dropDatabase()
}

/** The database of each subgraph of a service. */
export async function dropServiceDatabases(url: string, database: string): Promise<void> {
  await dropDatabases(url, `${database}_billing`, `${database}_inference`, `${database}_knowledge`)
}

/**
 * The cases that the server cannot meet, with the reasons; a mongod, which tells the commit that it was built from, is
 * held to every one.
 */
export async function casesBeyond(url: string): Promise<Readonly<Record<string, string>>> {
  await using client = new MongoClient(url)
  const { gitVersion } = await client.db('admin').command({ buildInfo: 1 })
  return gitVersion === undefined ? STAND_IN_CANNOT : {}
}
