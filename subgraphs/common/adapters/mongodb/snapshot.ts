import { type ClientSession, type Db, MongoCompatibilityError, MongoServerError, ReadConcern } from 'mongodb'
import { OPERATION_LIMIT_MS, STARTS } from './connection.ts'
import { translated } from './failures.ts'
import type { ResilientClient } from './resilient-client.ts'

/** Reads of a server that all return the state at one moment, in all its databases. */
export interface MongoSnapshot {
  readonly client: ResilientClient
  readonly session: ClientSession
  /** The moment, with a precision of 1 s. */
  readonly createdAt: Date
}

/**
 * Returns a database whose reads with the session return the state at the snapshot. The client's read concern would
 * override the session's.
 */
export function databaseAt({ client }: MongoSnapshot, database: string): Db {
  return client.db(database, { readConcern: new ReadConcern('snapshot') })
}

/**
 * Starts a snapshot. Null: the server has no snapshots, like a standalone one, or one before MongoDB 5.0. Close the
 * client to end the snapshot.
 * @throws {ServiceUnavailable} the server is unreachable
 */
export async function startSnapshot(client: ResilientClient, database: string): Promise<MongoSnapshot | null> {
  const session = client.startSession({ snapshot: true })
  try {
    // The first read of the session fixes the moment, and the reply names it. Some servers ignore the request.
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
