import { type ClientSession, type Db, MongoCompatibilityError, MongoServerError, ReadConcern } from 'mongodb'
import { OPERATION_LIMIT_MS, STARTS } from './connection.ts'
import { translated } from './failures.ts'
import type { ResilientClient } from './resilient-client.ts'

/** Reads of a server that all show one moment, in all its databases. */
export interface MongoSnapshot {
  readonly client: ResilientClient
  readonly session: ClientSession
  /** To the second. */
  readonly createdAt: Date
}

/** A database whose reads by the session show the moment. The level of the client would win over that of the session. */
export function databaseAt({ client }: MongoSnapshot, database: string): Db {
  return client.db(database, { readConcern: new ReadConcern('snapshot') })
}

/**
 * Begins reads that show one moment. Null: the server has none, like a standalone one, or one before MongoDB 5.0. Close
 * the client to end them.
 * @throws {ServiceUnavailable} the server cannot be asked
 */
export async function startSnapshot(client: ResilientClient, database: string): Promise<MongoSnapshot | null> {
  const session = client.startSession({ snapshot: true })
  try {
    // The first read of the session chooses the moment, and the reply names it. Some servers pass over the wish.
    const read = () => client.db(database).command({ find: STARTS, limit: 1 }, { session })
    const { cursor } = await client.withTimeout(read, OPERATION_LIMIT_MS)
    const seconds: number | undefined = cursor.atClusterTime?.getHighBitsUnsigned()
    if (seconds !== undefined) return { client, session, createdAt: new Date(1_000 * seconds) }
  } catch (error) {
    const reason = translated(error, STARTS, 'The document store')
    const isRefused = reason === error && (error instanceof MongoServerError || error instanceof MongoCompatibilityError)
    if (!isRefused) throw reason
  }
  await session.endSession()
  return null
}
