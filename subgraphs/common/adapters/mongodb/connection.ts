import { type MongoClientOptions, MongoError, MongoServerError, MongoServerSelectionError } from 'mongodb'
import type { MongoDatabase } from '../../documents/mongodb-url.ts'
import { Unfit } from '../../process/opening.ts'
import { isDuplicateKey } from './failures.ts'
import { LastingClient } from './lasting-client.ts'

/** Connections of one store of one process; operations beyond them wait. Ten processes of two stores stay far below mongod's own 65,536. */
const MAX_CONNECTIONS = 50
/** How long an operation waits for one of them: longer than any that goes well, so that it tells of an overload. */
const WAIT_QUEUE_TIMEOUT_MS = 5_000
/** How long an operation waits for a primary. An election takes up to 12 s, which is too long for a caller: it is told to come again. */
const SERVER_SELECTION_TIMEOUT_MS = 5_000
const CONNECT_TIMEOUT_MS = 3_000
/** After this the server says that a write has not reached the majority. Its outcome is unknown then. */
const WRITE_CONCERN_TIMEOUT_MS = 10_000
/** A connection without an answer for this long is given up: above the one before, which is the longest that a server takes by itself. */
const SOCKET_TIMEOUT_MS = 15_000
/** While nobody asks, a server that is gone is looked for this often. */
const HEARTBEAT_MS = 10_000
/** A look at a server waits for a heartbeat at most, and for a connection and a greeting before. */
const HEARTBEAT_LIMIT_MS = 2 * (HEARTBEAT_MS + 2 * CONNECT_TIMEOUT_MS)
/** Twice the longest of all waits above: what the driver has not ended by then, it never ends. */
export const OPERATION_LIMIT_MS = 2 * (WAIT_QUEUE_TIMEOUT_MS + SERVER_SELECTION_TIMEOUT_MS + CONNECT_TIMEOUT_MS + SOCKET_TIMEOUT_MS)

/**
 * An acknowledged write is in the journals of a majority and survives a failover; a read sees nothing that a failover could take back (Jepsen on
 * MongoDB 4.2.6 shows what the weaker defaults lose). These win over options of the URL. The driver repeats a write whose connection broke only
 * where the server can tell the repetition (replica sets and shards), and otherwise leaves it to the caller, which repeats by id.
 */
const OPTIONS: MongoClientOptions = {
  appName: 'kis',
  writeConcern: { w: 'majority', journal: true, wtimeoutMS: WRITE_CONCERN_TIMEOUT_MS },
  readConcern: { level: 'majority' },
  readPreference: 'primary',
  retryWrites: true,
  retryReads: true,
  maxPoolSize: MAX_CONNECTIONS,
  waitQueueTimeoutMS: WAIT_QUEUE_TIMEOUT_MS,
  serverSelectionTimeoutMS: SERVER_SELECTION_TIMEOUT_MS,
  connectTimeoutMS: CONNECT_TIMEOUT_MS,
  socketTimeoutMS: SOCKET_TIMEOUT_MS,
}

const AUTHENTICATION_FAILED = 18
const UNAUTHORIZED = 13

/** Holds one small document, which each start and each look at the store writes. */
const STARTS = 'starts'

/** Connects and looks whether the server will do. @throws {Unfit} says in a sentence why it will not. @throws {Error} for a URL that cannot be read. */
export async function connectMongo({ url, database }: MongoDatabase): Promise<LastingClient> {
  const client = clientOf(url)
  try {
    await client.connect()
    await client.bounded(() => checkServer(client, database), 2 * OPERATION_LIMIT_MS)
    return client
  } catch (error) {
    await client.close()
    throw startFailureOf(error)
  }
}

async function checkServer(client: LastingClient, database: string): Promise<void> {
  const { readOnly } = await client.db(database).command({ hello: 1 })
  if (readOnly) throw new Unfit(['MongoDB cannot be used: the server is read-only'])
  await tryToWrite(client, database)
}

/** Only a write tells of missing rights, a full disk, and a majority that is not there. */
export async function tryToWrite(client: LastingClient, database: string): Promise<void> {
  const starts = client.db(database).collection<{ _id: string }>(STARTS)
  try {
    await starts.updateOne({ _id: 'last' }, { $set: { at: new Date() } }, { upsert: true })
  } catch (error) {
    // Another start has made the document at this moment.
    if (!isDuplicateKey(error)) throw error
  }
}

function clientOf(url: string): LastingClient {
  try {
    // Half of it at random, so that processes that have lost the same server do not come back together.
    const heartbeatFrequencyMS = HEARTBEAT_MS * (0.5 + Math.random() / 2)
    return new LastingClient(url, { ...OPTIONS, heartbeatFrequencyMS, heartbeatLimitMs: HEARTBEAT_LIMIT_MS })
  } catch {
    // The driver's own message can quote parts of the URL, of the password too where its special characters are not encoded.
    throw new Error('The MongoDB URL is none that the driver reads; special characters of user name and password are percent-encoded in it')
  }
}

/** A server that is too old comes as a failed selection, in whose words the driver says which version it wants. */
function startFailureOf(error: unknown): unknown {
  // A name that DNS does not know comes as Node's own error.
  const isUnknownHost = error instanceof Error && 'syscall' in error
  if (!(error instanceof MongoError || isUnknownHost)) return error
  if (isUnknownHost || error instanceof MongoServerSelectionError)
    return new Unfit([`MongoDB cannot be reached: ${error.message}`], { cause: error })
  const isRefused = error instanceof MongoServerError && (error.code === AUTHENTICATION_FAILED || error.code === UNAUTHORIZED)
  return new Unfit([`MongoDB ${isRefused ? 'does not accept the user of the URL' : 'cannot be used'}: ${error.message}`], { cause: error })
}
