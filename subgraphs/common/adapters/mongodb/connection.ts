import { type MongoClientOptions, MongoError, MongoServerError, MongoServerSelectionError } from 'mongodb'
import type { MongoDatabase } from '../../documents/mongodb-url.ts'
import { Unfit } from '../../process/opening.ts'
import { isDuplicateKey } from './failures.ts'
import { ResilientClient } from './resilient-client.ts'

/**
 * Connections of one store in one process; more operations wait. Ten processes with two stores stay far below mongod's
 * limit of 65,536.
 */
export const MAX_CONNECTIONS = 50
/**
 * How long an operation waits for a connection, and a long read for its turn. Longer than any successful operation
 * takes, so a timeout means overload.
 */
export const WAIT_QUEUE_TIMEOUT_MS = 5_000
/**
 * How long an operation waits for a primary. An election takes up to 12 s: too long for a caller, who is told to try
 * again.
 */
const SERVER_SELECTION_TIMEOUT_MS = 5_000
const CONNECT_TIMEOUT_MS = 3_000
/** After this the server reports that a write has not reached the majority. Its outcome is then unknown. */
const WRITE_CONCERN_TIMEOUT_MS = 10_000
/**
 * A connection without an answer for this long is given up. Above the write timeout, the longest that a server takes by
 * itself.
 */
const SOCKET_TIMEOUT_MS = 15_000
/** How often a lost server is looked for while the store is idle. */
const HEARTBEAT_MS = 10_000
/** A check of a server takes at most a heartbeat, plus the time to connect and greet. */
const HEARTBEAT_LIMIT_MS = 2 * (HEARTBEAT_MS + 2 * CONNECT_TIMEOUT_MS)
/** Twice the sum of all waits above. What the driver has not finished by then never finishes. */
export const OPERATION_LIMIT_MS = 2 * (WAIT_QUEUE_TIMEOUT_MS + SERVER_SELECTION_TIMEOUT_MS + CONNECT_TIMEOUT_MS + SOCKET_TIMEOUT_MS)

/**
 * An acknowledged write is in the journals of a majority and survives a failover. A read sees nothing that a failover
 * could undo (Jepsen's report on MongoDB 4.2.6 shows what weaker defaults lose). These win over options of the URL.
 * After a broken connection the driver repeats a write only where the server recognises the repetition (replica sets
 * and shards). Otherwise the caller repeats it by id.
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

/** Has one small document, which each start and each check of the store writes. */
export const STARTS = 'starts'

/**
 * Connects, and checks that the server is suitable.
 * @throws {Unfit} the server is unsuitable; the message says why in a sentence
 * @throws {Error} the URL cannot be read
 */
export async function connectMongo({ url, database }: MongoDatabase): Promise<ResilientClient> {
  const client = openClient(url)
  try {
    await client.connect()
    await client.withTimeout(() => checkServer(client, database), 2 * OPERATION_LIMIT_MS)
    return client
  } catch (error) {
    await client.close()
    throw toStartFailure(error)
  }
}

async function checkServer(client: ResilientClient, database: string): Promise<void> {
  const { readOnly } = await client.db(database).command({ hello: 1 })
  if (readOnly) throw new Unfit(['MongoDB cannot be used: the server is read-only'])
  await tryToWrite(client, database)
}

/** Only a write shows missing rights, a full disk or a missing majority. */
export async function tryToWrite(client: ResilientClient, database: string): Promise<void> {
  const starts = client.db(database).collection<{ _id: string }>(STARTS)
  try {
    await starts.updateOne({ _id: 'last' }, { $set: { at: new Date() } }, { upsert: true })
  } catch (error) {
    // Another start has just created the document.
    if (!isDuplicateKey(error)) throw error
  }
}

function openClient(url: string): ResilientClient {
  try {
    // Half of it at random, so that processes that lost the same server do not return at the same time.
    const heartbeatFrequencyMS = HEARTBEAT_MS * (0.5 + Math.random() / 2)
    return new ResilientClient(url, { ...OPTIONS, heartbeatFrequencyMS, heartbeatLimitMs: HEARTBEAT_LIMIT_MS })
  } catch {
    // The driver's message may quote parts of the URL, and even of the password if its special characters are not
    // encoded.
    throw new Error('The driver cannot read the MongoDB URL; percent-encode special characters in the user name and the password')
  }
}

/** A server that is too old fails as a server selection, whose message names the wanted version. */
function toStartFailure(error: unknown): unknown {
  // A host name that DNS does not know is an error of Node itself.
  const isUnknownHost = error instanceof Error && 'syscall' in error
  if (!(error instanceof MongoError || isUnknownHost)) return error
  if (isUnknownHost || error instanceof MongoServerSelectionError)
    return new Unfit([`MongoDB cannot be reached: ${error.message}`], { cause: error })
  const isRefused = error instanceof MongoServerError && (error.code === AUTHENTICATION_FAILED || error.code === UNAUTHORIZED)
  return new Unfit([`MongoDB ${isRefused ? 'does not accept the user of the URL' : 'cannot be used'}: ${error.message}`], { cause: error })
}
