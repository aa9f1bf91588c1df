import { randomUUID } from 'node:crypto'
import { MongoClient } from 'mongodb'

const ORDER = 'mongo-java-server orders strings by UTF-16 unit'
const NULL = 'mongo-java-server takes null for an absent field'

/** The cases that the stand-in of `test/engines/mongodb` cannot pass. */
const STAND_IN_CANNOT: Readonly<Record<string, string>> = {
  'order strings by code point': ORDER,
  '$inc of null fails and changes nothing': NULL,
  '$push to null fails and changes nothing': NULL,
  '$set inside null fails and changes nothing': NULL,
}

/** Returns a name that no other run uses, so that runs and suites can share a server. */
export function newDatabaseName(): string {
  return `kis_test_${randomUUID().slice(0, 8)}`
}

/** Returns the URL with another database. A URL whose own database serves the login must set `authSource`. */
export function withDatabase(url: string, database: string): string {
  return url.replace(/^(mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/[^?]*)?/, `$1/${database}`)
}

/** Returns the URL with this user and password, in place of what it may have. */
export function withUser(url: string, user: string): string {
  return url.replace(/\/\/(?:[^@/?]+@)?/, `//${user}@`)
}

export async function dropDatabases(url: string, ...names: readonly string[]): Promise<void> {
  await using client = new MongoClient(url)
  for (const name of names) await client.db(name).dropDatabase()
}

/** Drops the database of each subgraph of a service. */
export async function dropServiceDatabases(url: string, database: string): Promise<void> {
  await dropDatabases(url, `${database}_billing`, `${database}_inference`, `${database}_knowledge`)
}

/**
 * Returns the cases that the server cannot pass, with the reasons. A real mongod, which reports its commit, must pass
 * all of them.
 */
export async function casesBeyond(url: string): Promise<Readonly<Record<string, string>>> {
  await using client = new MongoClient(url)
  const { gitVersion } = await client.db('admin').command({ buildInfo: 1 })
  return gitVersion === undefined ? STAND_IN_CANNOT : {}
}
